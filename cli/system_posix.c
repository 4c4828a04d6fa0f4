/* system_posix.c: the commands' system on Linux and other systems of POSIX. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "cli/system.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <termios.h>
#include <unistd.h>

extern char **environ;

/* ---- the process ---- */

char **system_begin(int *inout_count, char **words) {
    (void)inout_count;
    for (int stream = 0; stream < 3; stream++)
        if (fcntl(stream, F_GETFD) < 0) (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    return words;
}

char **system_environment(void) { return environ; }
long system_process(void) { return (long)getpid(); }

bool system_program(char *out, size_t room) {
    const ssize_t bytes = readlink("/proc/self/exe", out, room - 1);
    if (bytes <= 0) return false;
    out[bytes] = 0;
    return true;
}

void system_lock_errors(void) { flockfile(stderr); }
void system_unlock_errors(void) { funlockfile(stderr); }

static volatile sig_atomic_t interrupts;

static void leave(int signal_number) {
    system_terminal_restore();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void interrupt(int signal_number) {
    if (++interrupts >= 3) leave(signal_number);
}

void system_interrupts_catch(bool restart) {
    struct sigaction action = { .sa_handler = interrupt, .sa_flags = restart ? SA_RESTART : 0 };
    sigemptyset(&action.sa_mask);
    interrupts = 0;
    sigaction(SIGINT, &action, NULL);
}

unsigned system_interrupts_count(void) { return (unsigned)interrupts; }

/* ---- standard streams ---- */

static int number_of(system_stream stream) {
    static const int numbers[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
    return numbers[stream];
}

bool system_is_terminal(system_stream stream) { return isatty(number_of(stream)); }

size_t system_columns(system_stream stream) {
    struct winsize size;
    if (!system_is_terminal(stream)) return 0;
    return ioctl(number_of(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool system_has_input(void) {
    struct stat info;
    return fstat(STDIN_FILENO, &info) == 0 &&
           (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode));
}

char *system_gets(char *out, int room) { return fgets(out, room, stdin); }

bool system_more_input(int wait_ms) {
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    return isatty(STDIN_FILENO) && poll(&input, 1, wait_ms) == 1 && (input.revents & POLLIN);
}

bool system_input_ended(void) {
    int bytes = 1;
    return system_more_input(0) && ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes == 0;
}

static struct termios terminal_before;
static volatile bool terminal_known;

void system_terminal_keep(void) {
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        terminal_known = tcgetattr(STDIN_FILENO, &terminal_before) == 0;
    signal(SIGTERM, leave);
    signal(SIGHUP, leave);
}

void system_terminal_restore(void) {
    if (terminal_known) tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

int system_silence(void) {
    fflush(stdout);
    const int kept = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const bool done = kept >= 0 && nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0;
    if (nowhere >= 0) close(nowhere);
    if (done) return kept;
    if (kept >= 0) close(kept);
    return -1;
}

void system_speak(int kept) {
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
}

/* ---- files and folders ---- */

FILE *system_open(const char *path, const char *mode) { return fopen(path, mode[0] == 'r' ? "rbe" : "wbe"); }

const char *system_name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool system_is_there(const char *path) { return access(path, F_OK) == 0; }
bool system_is_readable(const char *path) { return access(path, R_OK) == 0; }

bool system_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool system_is_ordinary(FILE *file) {
    struct stat info;
    return fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode);
}

bool system_is_same(const char *path, const char *other) {
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool system_make_folder(const char *path, bool is_private) {
    return mkdir(path, is_private ? 0700 : 0777) == 0 || errno == EEXIST;
}
bool system_remove(const char *path) { return unlink(path) == 0; }
bool system_remove_folder(const char *path) { return rmdir(path) == 0; }

void system_list(const char *folder, void (*each)(void *user, const char *name), void *user) {
    DIR *list = opendir(folder);
    for (const struct dirent *entry; list && (entry = readdir(list));) each(user, entry->d_name);
    if (list) closedir(list);
}

bool system_temporary(char *out, size_t room) {
    if (snprintf(out, room, "/tmp/heddle-XXXXXX") >= (int)room) return false;
    const int file = mkstemp(out);
    if (file >= 0) close(file);
    return file >= 0;
}

system_folder system_look_at_folder(const char *path) {
    system_folder found = { .free_bytes = UINT64_MAX, .writable = access(path, W_OK | X_OK) == 0 };
    DIR *files = opendir(path);
    struct statvfs disk;
    struct stat facts;
    for (const struct dirent *entry; files && (entry = readdir(files));)
        if (fstatat(dirfd(files), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(facts.st_mode)) {
            found.bytes += (uint64_t)facts.st_size;
            found.count++;
        }
    if (files) closedir(files);
    if (statvfs(path, &disk) == 0) found.free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    return found;
}

/* ---- memory, libraries, programs ---- */

void *system_aligned(size_t bytes) { return aligned_alloc(64, (bytes + 63) & ~(size_t)63); }
void system_aligned_free(void *memory) { free(memory); }

void *system_library(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

bool system_find(void *library, const char *name, void *out) {
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

typedef struct library_search {
    const char *begins;
    char       *out;
    size_t      room;
} library_search;

static int look_at_library(struct dl_phdr_info *info, size_t bytes, void *user) {
    const library_search *search = user;
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    (void)bytes;
    if (!slash || strncmp(slash + 1, search->begins, strlen(search->begins)) != 0) return 0;
    snprintf(search->out, search->room, "%s", info->dlpi_name);
    return 1;
}

bool system_find_library(const char *begins, char *out, size_t room) {
    library_search search = { begins, out, room };
    return dl_iterate_phdr(look_at_library, &search) == 1;
}
