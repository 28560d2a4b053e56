/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Included first by every file that uses such functions. The shim is loaded into whatever libc the target
 * has, which in a container may be older than the one that it is built against. What
 * glibc moved into libc.so.6 in 2.34 (threads, dlopen) is the same function under its first
 * version, so that is asked for. An older glibc has it in libpthread and libdl. The shim does not name these two as needed:
 * the loader would search for them by the process's LD_LIBRARY_PATH, and an empty or relative folder there may be one that other
 * users write to. Every program that uses CUDA has both; where the process lacks one the functions below are NULL, and the
 * shim does nothing (shim.c). The rest here is kept clear of functions that came late.
 */
#ifndef SHIM_LIBC_H
#define SHIM_LIBC_H

/* since which all of it has been there on this architecture */
#if defined(__x86_64__)
#define SHIM_GLIBC	  "GLIBC_2.2.5"
#define SHIM_GLIBC_DLINFO "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define SHIM_GLIBC	  "GLIBC_2.17"
#define SHIM_GLIBC_DLINFO "GLIBC_2.17"
#endif

#if defined(SHIM_GLIBC) && defined(__linux__)
#define FIRST_VERSION(function) __asm__(".symver " #function "," #function "@" SHIM_GLIBC)
FIRST_VERSION(dlopen);
FIRST_VERSION(dlsym);
FIRST_VERSION(dlclose);
__asm__(".symver dlinfo,dlinfo@" SHIM_GLIBC_DLINFO);
FIRST_VERSION(pthread_create);
FIRST_VERSION(pthread_attr_setstacksize);
FIRST_VERSION(pthread_mutex_trylock);
FIRST_VERSION(sem_init);
FIRST_VERSION(sem_post);
FIRST_VERSION(sem_timedwait);
#undef FIRST_VERSION
#endif

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

#endif
