/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Included first by every file that uses such functions. The shim is loaded into the libc of the target, which in a
 * container may be older than the one that the shim is built against. The functions that glibc moved into libc.so.6
 * in 2.34 (threads, dlopen) are the same under their first symbol version, so that version is used. An older glibc
 * has them in libpthread and libdl. The shim does not declare these two as needed: the loader would search them by
 * the process's LD_LIBRARY_PATH, and an empty or relative folder there may be writable for other users. Every program
 * that uses CUDA has both; if the process lacks one, the functions below are NULL, and the shim does nothing
 * (shim.c). Other functions that were added late are avoided.
 */
#pragma once

/* the version since which x86-64 has all of them */
#define FIRST_VERSION(function) __asm__(".symver " #function "," #function "@GLIBC_2.2.5")
FIRST_VERSION(dlopen);
FIRST_VERSION(dlsym);
FIRST_VERSION(dlclose);
__asm__(".symver dlinfo,dlinfo@GLIBC_2.3.3");
FIRST_VERSION(pthread_create);
FIRST_VERSION(pthread_attr_setstacksize);
FIRST_VERSION(pthread_mutex_trylock);
FIRST_VERSION(sem_init);
FIRST_VERSION(sem_post);
FIRST_VERSION(sem_timedwait);
#undef FIRST_VERSION

#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlclose
#pragma weak dlinfo
#pragma weak pthread_create
#pragma weak pthread_attr_setstacksize
#pragma weak pthread_mutex_trylock
#pragma weak sem_init
#pragma weak sem_post
#pragma weak sem_timedwait
