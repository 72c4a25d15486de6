/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -object memory-backend-*: RAM blocks with a say in where the host takes them from. */
#include "memory/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "qemu/file.h"
#include "qemu/os.h"
#include "qemu/user-object.h"

#define BLOCK_ALIGN (2 * MiB) /* what ram_block_new() aligns to */

typedef struct MemoryBackend {
    UserObject obj;
    RAMBlock *ram;
    int fd;
} MemoryBackend;

/* ---- Where the bytes are ---- */

/* Memory of huge pages comes in whole ones, at addresses that fit. */
static bool check_page_size(const char *id, int fd, uint64_t size, Error **errp)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0 || fs.f_type != HUGETLBFS_MAGIC) {
        return true;
    }
    if ((uint64_t)fs.f_bsize > BLOCK_ALIGN) {
        error_setg(errp, "memory backend '%s': pages of more than 2 MiB cannot be used", id);
        return false;
    }
    if (size % (uint64_t)fs.f_bsize) {
        error_setg(errp, "memory backend '%s': size %" PRIu64 " is no multiple of the page size "
                         "%" PRIu64, id, size, (uint64_t)fs.f_bsize);
        return false;
    }
    return true;
}

/*
 * Pages that are first written when the guest uses them come too late to be refused: SIGBUS. So the
 * file system must have room for all of them now; with prealloc=on they are taken at once. A private
 * mapping takes none, except where a page that is only read becomes one of the file's.
 */
static bool check_room(UserObject *obj, int fd, const char *path, uint64_t size, Error **errp)
{
    struct statfs fs;
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || fstatfs(fd, &fs) < 0 || !fs.f_blocks ||
        (!qemu_opt_get_bool(obj->opts, "share", false) && fs.f_type != TMPFS_MAGIC &&
         fs.f_type != HUGETLBFS_MAGIC)) {
        return true;
    }
    uint64_t taken = (uint64_t)st.st_blocks * 512;
    uint64_t room = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    if (size > taken && size - taken > room) {
        error_setg(errp, "can't have backing store %s for guest RAM: it needs %" PRIu64 " bytes, its "
                   "file system has %" PRIu64 " left; free some, make size= smaller or choose another "
                   "mem-path=", path, size - taken, room);
        return false;
    }
    int err = qemu_opt_get_bool(obj->opts, "prealloc", false) ? posix_fallocate(fd, 0, (off_t)size) : 0;
    if (err && err != EOPNOTSUPP && err != EINVAL) {
        error_setg_errno(errp, err, "can't have backing store %s for guest RAM of %" PRIu64 " bytes",
                         path, size);
        return false;
    }
    return true;
}

/* A directory means: a new file in it that nobody else sees. */
static int open_in_directory(const char *dir, Error **errp)
{
    char *path = g_strdup_printf("%s/qemu_back_mem.XXXXXX", dir);
    int fd = g_mkstemp_full(path, O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0) {
        error_setg_errno(errp, errno, "can't create backing store in %s for guest RAM", dir);
    } else {
        unlink(path);
    }
    g_free(path);
    return fd;
}

static int open_file(const char *path, uint64_t size, Error **errp)
{
    struct stat st;
    int fd;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        fd = open_in_directory(path, errp);
    } else {
        fd = startup_file_open(path, O_RDWR | O_CREAT, 0600);
        if (fd < 0) {
            error_setg_errno(errp, errno, "can't open backing store %s for guest RAM", path);
        }
    }
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size &&
        (uint64_t)st.st_size < size) {
        error_setg(errp, "backing store size 0x%" PRIx64 " does not match 'size' option 0x%" PRIx64,
                   (uint64_t)st.st_size, size);
        close(fd);
        return -1;
    }
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size >= size) {
        return fd;
    }
    startup_file_grows(fd, st.st_size);
    if (ftruncate(fd, (off_t)size) == 0) {
        return fd;
    }
    error_setg_errno(errp, errno, "can't give backing store %s %" PRIu64 " bytes", path, size);
    close(fd);
    return -1;
}

static int open_memfd(UserObject *obj, uint64_t size, Error **errp)
{
    bool seal = qemu_opt_get_bool(obj->opts, "seal", true);
    unsigned flags = MFD_CLOEXEC | (seal ? MFD_ALLOW_SEALING : 0) |
                     (qemu_opt_get_bool(obj->opts, "hugetlb", false) ? MFD_HUGETLB : 0);
    int fd = memfd_create("memory-backend-memfd", flags);

    if (fd < 0) {
        error_setg_errno(errp, errno, "memory backend '%s': no memfd", obj->id);
        return -1;
    }
    if (ftruncate(fd, (off_t)size) < 0 ||
        (seal && fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)) {
        error_setg_errno(errp, errno, "memory backend '%s': cannot size the memfd", obj->id);
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- The object ---- */

static void advise(const MemoryBackend *b)
{
    QemuOpts *o = b->obj.opts;

    if (qemu_opt_get_bool(o, "merge", false) && os_memory_locked() != MEM_LOCK_OFF) {
        warn_report("memory backend '%s': merge=on has no effect: locked memory is not merged", b->obj.id);
    }
    if (!qemu_opt_get_bool(o, "dump", true)) {
        madvise(b->ram->host, b->ram->size, MADV_DONTDUMP);
    }
}

static bool make_block(MemoryBackend *b, bool share, Error **errp)
{
    QemuOpts *o = b->obj.opts;
    uint64_t size = qemu_opt_get_size(o, "size", 0);
    uint32_t flags = 0;
    char *name;

    share = qemu_opt_get_bool(o, "share", share);
    flags |= share ? RAM_SHARED : 0;
    flags |= qemu_opt_get_bool(o, "prealloc", false) ? RAM_PREALLOC : 0;
    flags |= qemu_opt_get_bool(o, "merge", false) ? RAM_MERGEABLE : 0;
    name = g_strconcat(
        qemu_opt_get_bool(o, "x-use-canonical-path-for-ramblock-id", true) ? "/objects/" : "",
        b->obj.id, NULL);
    b->ram = ram_block_new(name, size, flags, b->fd, errp);
    g_free(name);
    if (b->ram) {
        advise(b);
    }
    return b->ram != NULL;
}

/* size= in bytes; 0 with an error. */
static uint64_t wanted_size(UserObject *obj, Error **errp)
{
    uint64_t size = qemu_opt_get_size(obj->opts, "size", 0);

    if (!qemu_opt_get(obj->opts, "size")) {
        error_setg(errp, "Parameter 'size' is missing");
    } else if (!size || size > INT64_MAX) {
        error_setg(errp, "property 'size' of %s doesn't take value '%" PRIu64 "'",
                   obj->type->name, size);
        size = 0;
    }
    return size;
}

static bool ram_complete(UserObject *obj, Error **errp)
{
    MemoryBackend *b = (MemoryBackend *)obj;

    b->fd = -1;
    return wanted_size(obj, errp) && make_block(b, false, errp);
}

static bool fd_complete(MemoryBackend *b, int fd, uint64_t size, bool share, Error **errp)
{
    b->fd = fd;
    if (fd >= 0 && check_page_size(b->obj.id, fd, size, errp) && make_block(b, share, errp)) {
        return true;
    }
    if (fd >= 0) {
        close(fd);
    }
    return false;
}

/* The file as it was before the object that is refused now. At start-up more than that is undone. */
static void undo_file(const char *path, bool was_there, const struct stat *was)
{
    struct stat now;

    if (stat(path, &now) < 0 || !S_ISREG(now.st_mode)) {
        return;
    }
    if (!was_there) {
        unlink(path);
    } else if (now.st_ino == was->st_ino && now.st_size > was->st_size &&
               truncate(path, was->st_size) < 0) {
        warn_report("cannot undo the growth of %s: %s", path, g_strerror(errno));
    }
}

static bool file_complete(UserObject *obj, Error **errp)
{
    const char *path = qemu_opt_get(obj->opts, "mem-path");
    uint64_t size = wanted_size(obj, errp);
    struct stat was;
    Error *err = NULL;

    if (!size) {
        return false;
    }
    if (!path) {
        error_setg(errp, "Parameter 'mem-path' is missing");
        return false;
    }
    bool was_there = stat(path, &was) == 0;
    int fd = open_file(path, size, &err);
    if (fd >= 0 && !check_room(obj, fd, path, size, &err)) {
        close(fd);
        fd = -1;
    }
    bool ok = fd_complete((MemoryBackend *)obj, fd, size, false, &err);
    if (!ok) {
        undo_file(path, was_there, &was);
    }
    error_propagate(errp, err);
    return ok;
}

static bool memfd_complete(UserObject *obj, Error **errp)
{
    uint64_t size = wanted_size(obj, errp);

    return size && fd_complete((MemoryBackend *)obj, open_memfd(obj, size, errp), size, true, errp);
}

static void backend_finalize(UserObject *obj)
{
    MemoryBackend *b = (MemoryBackend *)obj;

    if (qemu_opt_get_bool(obj->opts, "discard-data", false)) {
        madvise(b->ram->host, b->ram->size, MADV_REMOVE);
    }
    ram_block_free(b->ram);
    if (b->fd >= 0) {
        close(b->fd);
    }
}

#define COMMON_PROPS                                                                               \
    { "size", QEMU_OPT_SIZE, "Size of the memory region (ex: 500M)" },                             \
    { "share", QEMU_OPT_BOOL, "Mark the memory as private to QEMU or shared" },                    \
    { "prealloc", QEMU_OPT_BOOL, "Preallocate memory" },                                           \
    { "merge", QEMU_OPT_BOOL, "Mark memory as mergeable" },                                        \
    { "dump", QEMU_OPT_BOOL, "Set to 'off' to exclude from core dump" },                           \
    { "x-use-canonical-path-for-ramblock-id", QEMU_OPT_BOOL, NULL }

static const QemuOptDesc ram_props[] = { COMMON_PROPS, { NULL } };
static const QemuOptDesc file_props[] = {
    COMMON_PROPS,
    { "mem-path", QEMU_OPT_STRING, "file, or directory for a file of its own" },
    { "discard-data", QEMU_OPT_BOOL, "the content need not outlive the object" },
    { NULL },
};
static const QemuOptDesc memfd_props[] = {
    COMMON_PROPS,
    { "hugetlb", QEMU_OPT_BOOL, "Use huge pages" },
    { "seal", QEMU_OPT_BOOL, "Seal growing & shrinking" },
    { NULL },
};

#define BACKEND(var, type_name, description, properties, fn)                                       \
    static const UserObjectType var = {                                                            \
        .name = type_name, .parent = "memory-backend", .desc = description, .props = properties,   \
        .instance_size = sizeof(MemoryBackend), .complete = fn, .finalize = backend_finalize,      \
    };                                                                                             \
    USER_OBJECT_TYPE(var)

BACKEND(backend_ram, "memory-backend-ram", "memory", ram_props, ram_complete);
BACKEND(backend_file, "memory-backend-file", "memory in a file", file_props, file_complete);
BACKEND(backend_memfd, "memory-backend-memfd", "memory in a memfd", memfd_props, memfd_complete);

RAMBlock *memory_backend_take(const char *id, uint64_t size, Error **errp)
{
    UserObject *obj = user_object_find(id);
    MemoryBackend *b = (MemoryBackend *)obj;

    if (!obj || g_strcmp0(obj->type->parent, "memory-backend")) {
        error_setg(errp, "Memory backend '%s' not found", id);
        return NULL;
    }
    if (obj->in_use) {
        error_setg(errp, "Memory backend '%s' is in use already", id);
        return NULL;
    }
    if (b->ram->size != size) {
        error_setg(errp, "Memory backend '%s' has %" PRIu64 " bytes, but -m asks for %" PRIu64
                         "; make them equal", id, b->ram->size, size);
        return NULL;
    }
    obj->in_use = true;
    return b->ram;
}
