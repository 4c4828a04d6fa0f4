/* system.h: what only the operating system gives the commands: the command line, the terminal, files and folders,
 * libraries. One implementation for each system: system_posix.c, system_windows.c. Paths and words are UTF-8. What
 * fails sets errno. */
#ifndef CLI_SYSTEM_H
#define CLI_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Formats are C11's on every system. */
#if defined(__MINGW32__)
#  define CLI_PRINTF(format_at, first_at) __attribute__((format(gnu_printf, format_at, first_at)))
#elif defined(__GNUC__)
#  define CLI_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#  define CLI_PRINTF(format_at, first_at)
#endif

/* ---- the process ---- */

/* Before all else. The words of the command line, with NULL behind them; NULL: no memory is left. A closed standard
 * stream becomes one that cannot be used, so that no file gets its number. */
char **system_begin(int *inout_count, char **words);
char **system_environment(void); /* "NAME=value", with NULL behind them */
long system_process(void);       /* its number */
/* Where the program itself lies. */
bool system_program(char *out, size_t room);
/* Standard error is this thread's alone; may be nested. */
void system_lock_errors(void);
void system_unlock_errors(void);
/* Ctrl-C is counted from now on in place of ending the program, but for the third one. `restart`: calls that it
 * interrupts go on. */
void system_interrupts_catch(bool restart);
unsigned system_interrupts_count(void);

/* ---- standard streams ---- */

typedef enum system_stream { SYSTEM_INPUT, SYSTEM_OUTPUT, SYSTEM_ERRORS } system_stream;
bool system_is_terminal(system_stream stream);
/* Columns of the terminal that shows what is written there; 0: it is none, or takes no escape sequences. */
size_t system_columns(system_stream stream);
/* Whether standard input is a pipe or a file, which somebody has put there, and no terminal or nothing. */
bool system_has_input(void);
/* fgets of standard input: a line's next piece, with its newline at the end; NULL: the end, or a signal. */
char *system_gets(char *out, int room);
/* Whether a terminal has more input within the time. */
bool system_more_input(int wait_ms);
/* Whether Ctrl-D was typed while nobody read: the terminal's own rules hold it, and are lost with an editor's. */
bool system_input_ended(void);
/* Keeps how the terminal is set, to be put back when the process is ended from outside; and puts it back. */
void system_terminal_keep(void);
void system_terminal_restore(void);
/* Standard output goes nowhere from now on; a number for system_speak, which ends that, or -1. */
int system_silence(void);
void system_speak(int kept);

/* ---- files and folders ---- */

FILE *system_open(const char *path, const char *mode); /* "rb" or "wb"; no child inherits it */
const char *system_name_of(const char *path); /* what stands behind its last folder */
bool system_is_there(const char *path);
bool system_is_folder(const char *path);
bool system_is_readable(const char *path);
bool system_is_ordinary(FILE *file);
bool system_is_same(const char *path, const char *other); /* one file, under whatever names */
bool system_make_folder(const char *path, bool is_private); /* true where it is there already */
bool system_remove(const char *path);
bool system_remove_folder(const char *path); /* an empty one */
/* Calls `each` with every name in the folder; none where it cannot be read. */
void system_list(const char *folder, void (*each)(void *user, const char *name), void *user);
/* A new empty file of this user alone, where temporary files belong. */
bool system_temporary(char *out, size_t room);
typedef struct system_folder {
    uint64_t count, bytes; /* of the ordinary files in it */
    uint64_t free_bytes;   /* on its disk; UINT64_MAX: unknown */
    bool     writable;
} system_folder;
system_folder system_look_at_folder(const char *path);

/* ---- memory, libraries, programs ---- */

void *system_aligned(size_t bytes); /* at a multiple of 64 */
void system_aligned_free(void *memory);
void *system_library(const char *name); /* it stays in the process; NULL: there is none */
/* Looks up a function; `out` is a pointer to a function pointer. */
bool system_find(void *library, const char *name, void *out);
/* Where the library lies that is in this process and whose name begins so; false: none is. */
bool system_find_library(const char *begins, char *out, size_t room);

#endif
