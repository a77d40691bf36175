/* CLONES before a function of plain loops: compiled for several vector widths, of which the machine's
 * own is chosen when the program is loaded. */
#ifndef BASE_CLONES_H
#define BASE_CLONES_H

#if !defined(__x86_64__) || defined(__clang__) || defined(__SANITIZE_ADDRESS__) ||                 \
    defined(__SANITIZE_THREAD__)
#define CLONES
#else
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

#endif
