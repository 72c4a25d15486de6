/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/compiler.h"
int main(void);
int main(void)
{
    return 0;
}
