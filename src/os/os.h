/* os.h: what only the operating system gives: files, mapped memory, libraries, the machine. One implementation for each
 * system: posix.c, windows.c. Paths are UTF-8. What fails sets errno. */
#ifndef HDI_OS_H
#define HDI_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- files, by the C library's numbers ---- */

typedef enum hdi_open_how {
    HDI_OPEN_READ,  /* without waiting for a pipe's writer */
    HDI_OPEN_AWAIT, /* to be read, waiting for it */
    HDI_OPEN_NEW,   /* to be written; it must not be there yet, and is its owner's alone */
    HDI_OPEN_WRITE  /* to be written from its beginning on */
} hdi_open_how;
int hdi_os_open(const char *path, hdi_open_how how); /* -1 on failure */
void hdi_os_close(int file);
FILE *hdi_os_stream(int file, const char *mode); /* closes the file too; NULL on failure, which leaves it open */

typedef enum hdi_file_kind {
    HDI_FILE_ORDINARY, HDI_FILE_FOLDER, HDI_FILE_PIPE, HDI_FILE_SOCKET, HDI_FILE_DEVICE
} hdi_file_kind;
typedef struct hdi_file_facts {
    hdi_file_kind kind;
    uint64_t      bytes;
} hdi_file_facts;
bool hdi_os_file_facts(int file, hdi_file_facts *out_facts);

bool hdi_os_is_slash(char c); /* whether it stands between the folders of a path */
/* Bytes read at an offset, 0 at the end, -1 on failure. */
int64_t hdi_os_read(int file, uint64_t offset, void *out, size_t bytes);
bool hdi_os_rename(const char *from, const char *to); /* in place of what is there, in one step */
bool hdi_os_remove(const char *path);
bool hdi_os_is_readable(const char *path);
bool hdi_os_make_folder(const char *path); /* its owner's alone; true where it is there already */
/* Whether a folder can hold what others must not touch; false: `why` says what is in the way. Removes what processes
 * left there that ended while they wrote (hdi_file_replace). True with a `why`: nothing can be written there. */
bool hdi_os_folder_open(const char *path, char *why, size_t room);

/* ---- memory ---- */

const void *hdi_os_map(int file, uint64_t bytes); /* to be read; NULL on failure */
void hdi_os_unmap(const void *map, uint64_t bytes);
/* Is all of this mapped to be read alone, and shared with its file? False where the system does not tell. */
bool hdi_os_is_shared_file(const void *memory, uint64_t bytes);
void hdi_os_rest(const void *bytes, uint64_t count); /* of a map: not needed soon */
void *hdi_os_pages(uint64_t bytes); /* of zeros; NULL on failure */
void hdi_os_free_pages(void *pages, uint64_t bytes);

/* ---- libraries ---- */

typedef void (*hdi_os_function)(void);
void *hdi_os_library(const char *name); /* it stays in the process; NULL: there is none */
hdi_os_function hdi_os_symbol(const void *library, const char *name);
/* The folder of the library that a function is from, with a slash at its end. */
bool hdi_os_library_folder(hdi_os_function function, char *out, size_t room);

/* ---- other programs ---- */

/* Runs a program that PATH leads to. `arguments` begin with its name and end with NULL; the files are its standard
 * input, output and errors. 0, or an error number: ENOENT, there is no such program; ETIMEDOUT, it was ended. */
int hdi_os_run(const char *const *arguments, FILE *const streams[3], uint32_t timeout_ms, int *out_code);

/* ---- the machine and this process ---- */

uint64_t hdi_os_memory_bytes(void); /* 0: the system does not tell */
bool hdi_os_memory_taken(uint64_t *out_bytes); /* by this process, without mapped files; false where nothing tells */
bool hdi_os_memory_available(uint64_t *out_bytes); /* without swapping; false where nothing tells */
uint32_t hdi_os_processor_count(void); /* that this process may use */
void hdi_os_processor_name(char *out, size_t room); /* "CPU" where the system does not tell */
bool hdi_os_take_tiles(void); /* asks for AMX' registers; false: there are none to be had */
long hdi_os_process(void); /* its number */
bool hdi_os_at_fork(void (*in_child)(void)); /* true where there is no fork */
bool hdi_os_random(void *out, size_t bytes); /* that nobody can foretell */
bool hdi_os_has_home(void); /* this user's folder is known, as some drivers take for granted */
/* The folder under which programs keep what they can make again; false: there is none. */
bool hdi_os_cache_root(char *out, size_t room);

/* Linux: processors, and bytes beside those in use, that control groups allow (quota.c); the type's greatest value: no
 * limit. `groups`: /proc/self/cgroup, `root`: /sys/fs/cgroup. */
uint32_t hdi_quota_processors(const char *groups, const char *root);
uint64_t hdi_quota_memory(const char *groups, const char *root);

#endif
