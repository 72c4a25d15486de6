/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The socket back end: what socket.c (connections) and socket-addr.c (addresses) share. */
#ifndef CHARDEV_SOCKET_INTERNAL_H
#define CHARDEV_SOCKET_INTERNAL_H

#include <netdb.h>
#include <sys/un.h>
#include "char-internal.h"

#define SOCKET_MAX_FDS 16

typedef enum SocketKind { SOCKET_UNIX, SOCKET_INET, SOCKET_FD } SocketKind;

typedef struct ChrSocket {
    ChrFd f; /* the peer; in_fd and out_fd are the same */
    SocketKind kind;
    bool server, telnet, nodelay;
    int listen_fd;     /* -1: client */
    int connecting_fd; /* -1: none */
    EventSource aux_src; /* the listener, or a connection being made */
    EventTimer retry;
    int64_t reconnect_ns; /* 0: no */

    struct sockaddr_un un;
    socklen_t un_len;
    char *path;          /* unix: as given */
    bool abstract, tight;
    bool unlink_path;    /* we made it */
    char *host, *port;
    uint64_t to;         /* last port to try; 0: just port */
    struct addrinfo *addrs, *next_addr;
    int fd;              /* SOCKET_FD */

    int fds[SOCKET_MAX_FDS]; /* came by SCM_RIGHTS */
    unsigned nfds;
    uint8_t telnet_state, telnet_owed;
    bool telnet_cr;
} ChrSocket;

/* Address options; resolves names. */
bool socket_parse(ChrSocket *s, const ChrOpts *o, Error **errp);
bool socket_listen(ChrSocket *s, Error **errp);
/* Waits for the connection. -1 on error. */
int socket_connect(ChrSocket *s, Error **errp);
/* *pending: it is being made. -1: failed. */
int socket_connect_nonblock(ChrSocket *s, bool *pending);
bool socket_set_nonblock(int fd, Error **errp);
void socket_tune(ChrSocket *s, int fd);
/* Sets the chardev's filename to the state of now. */
void socket_name(ChrSocket *s);
void socket_fini(ChrSocket *s);

#endif
