/* posix.c: the operating system's part on Linux and other systems of POSIX. */
#define _GNU_SOURCE /* affinity, dladdr, getentropy */
#define _FILE_OFFSET_BITS 64
#include "os/os.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- files ---- */

int hdi_os_open(const char *path, hdi_open_how how) {
    static const int flags[] = { [HDI_OPEN_READ] = O_RDONLY | O_NONBLOCK | O_NOCTTY,
                                 [HDI_OPEN_AWAIT] = O_RDONLY,
                                 [HDI_OPEN_NEW] = O_WRONLY | O_CREAT | O_EXCL,
                                 [HDI_OPEN_WRITE] = O_WRONLY | O_CREAT | O_TRUNC };
    int file;
    do file = open(path, flags[how] | O_CLOEXEC, how == HDI_OPEN_NEW ? 0600 : 0666);
    while (file < 0 && errno == EINTR);
    return file;
}

void hdi_os_close(int file) { close(file); }
FILE *hdi_os_stream(int file, const char *mode) { return fdopen(file, mode); }

bool hdi_os_file_facts(int file, hdi_file_facts *out_facts) {
    struct stat info;
    if (fstat(file, &info) != 0 || info.st_size < 0) return false;
    out_facts->bytes = (uint64_t)info.st_size;
    out_facts->kind = S_ISREG(info.st_mode)    ? HDI_FILE_ORDINARY
                      : S_ISDIR(info.st_mode)  ? HDI_FILE_FOLDER
                      : S_ISFIFO(info.st_mode) ? HDI_FILE_PIPE
                      : S_ISSOCK(info.st_mode) ? HDI_FILE_SOCKET
                                               : HDI_FILE_DEVICE;
    return true;
}

int64_t hdi_os_read(int file, uint64_t offset, void *out, size_t bytes) {
    if (offset > INT64_MAX) return -1;
    ssize_t count;
    do count = pread(file, out, bytes, (off_t)offset);
    while (count < 0 && errno == EINTR);
    return count;
}

bool hdi_os_is_slash(char c) { return c == '/'; }
bool hdi_os_rename(const char *from, const char *to) { return rename(from, to) == 0; }
bool hdi_os_remove(const char *path) { return unlink(path) == 0; }
bool hdi_os_is_readable(const char *path) { return access(path, R_OK) == 0; }
bool hdi_os_make_folder(const char *path) { return mkdir(path, 0700) == 0 || errno == EEXIST; }

/* The process that a name of hdi_file_replace tells: NAME.PID-POINTER; 0: it is none. */
static pid_t writer_of(const char *name) {
    const char *dot = strrchr(name, '.');
    char *end = NULL;
    const long process = dot && dot[1] >= '1' && dot[1] <= '9' ? strtol(dot + 1, &end, 10) : 0;
    return process > 0 && process <= INT32_MAX && strncmp(end, "-0x", 3) == 0 ? (pid_t)process : 0;
}

/* A file takes no time to write: an old one is of no process that lives, here or where processes have other numbers. */
static bool is_left(int folder, const char *name) {
    enum { OLD_S = 60 };
    struct stat info;
    const pid_t writer = writer_of(name);
    return writer && fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(info.st_mode) && time(NULL) - info.st_mtime > OLD_S &&
           kill(writer, 0) != 0 && errno == ESRCH;
}

/* Removes what processes left that ended while they wrote. */
static void tidy(int folder) {
    DIR *list = fdopendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (is_left(folder, entry->d_name)) unlinkat(folder, entry->d_name, 0);
    if (list) closedir(list);
    else close(folder);
}

bool hdi_os_folder_open(const char *path, char *why, size_t room) {
    struct stat info;
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    why[0] = 0;
    if (folder < 0 || fstat(folder, &info) != 0) snprintf(why, room, "there can be no folder (%s)", strerror(errno));
    else if (info.st_uid != geteuid() && info.st_uid != 0)
        snprintf(why, room, "it belongs to another user, who could put files there");
    else if (info.st_mode & (S_IWGRP | S_IWOTH))
        snprintf(why, room, "others can put files there; run chmod go-w on it");
    if (why[0]) {
        if (folder >= 0) close(folder);
        return false;
    }
    if (access(path, W_OK) != 0) snprintf(why, room, "nothing can be written there (%s)", strerror(errno));
    tidy(folder);
    return true;
}

/* ---- memory ---- */

const void *hdi_os_map(int file, uint64_t bytes) {
    if (bytes == 0 || bytes > SIZE_MAX / 2) return NULL;
    void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, file, 0);
    return map == MAP_FAILED ? NULL : map;
}

void hdi_os_unmap(const void *map, uint64_t bytes) {
    union { const void *read_only; void *plain; } pointer = { map };
    munmap(pointer.plain, (size_t)bytes);
}

bool hdi_os_is_shared_file(const void *memory, uint64_t bytes) {
    uintptr_t at = (uintptr_t)memory;
    const uintptr_t end = at + (uintptr_t)bytes;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re"); /* in the order of addresses */
    while (maps && at < end && fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        char may[5];
        const bool whole = strchr(line, '\n') != NULL;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, may) == 3 && from <= at && at < to) {
            if (strncmp(may, "r-", 2) != 0 || may[3] != 's') break;
            at = to;
        }
        for (int c = whole ? '\n' : 0; c != '\n' && c != EOF;) c = fgetc(maps); /* a long path's end */
    }
    if (maps) fclose(maps);
    return at >= end;
}

void hdi_os_rest(const void *bytes, uint64_t count) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)bytes + page - 1) / page * page;
    /* whole pages only: the others are shared with neighbours */
    const uintptr_t end = ((uintptr_t)bytes + (uintptr_t)count) / page * page;
    if (end > first) madvise((void *)first, end - first, MADV_DONTNEED);
}

void *hdi_os_pages(uint64_t bytes) {
    enum { HUGE_BYTES = 4 << 20 };
    if (bytes > SIZE_MAX / 2) return NULL;
    void *pages = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_BYTES) madvise(pages, (size_t)bytes, MADV_HUGEPAGE); /* a hint: fewer walks through page tables */
#endif
    return pages;
}

void hdi_os_free_pages(void *pages, uint64_t bytes) { munmap(pages, (size_t)bytes); }

/* ---- libraries ---- */

void *hdi_os_library(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

hdi_os_function hdi_os_symbol(const void *library, const char *name) {
    union { const void *given; void *handle; } pass = { .given = library }; /* dlsym only reads */
    void *symbol = dlsym(pass.handle, name);
    hdi_os_function function;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

bool hdi_os_library_folder(hdi_os_function function, char *out, size_t room) {
    Dl_info library;
    void *symbol;
    memcpy(&symbol, &function, sizeof symbol);
    if (!dladdr(symbol, &library) || !library.dli_fname) return false;
    const char *slash = strrchr(library.dli_fname, '/');
    const int length = slash ? (int)(slash + 1 - library.dli_fname) : 0;
    return snprintf(out, room, "%.*s", length, library.dli_fname) < (int)room;
}

/* ---- the machine and this process ---- */

uint64_t hdi_os_memory_bytes(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
}

bool hdi_os_memory_taken(uint64_t *out_bytes) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long long resident = 0, shared = 0; /* pages; shared with files, or by name */
    const bool told = file && fscanf(file, "%*u %llu %llu", &resident, &shared) == 2 && resident >= shared;
    if (file) fclose(file);
    *out_bytes = told ? (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    return told;
}

bool hdi_os_memory_available(uint64_t *out_bytes) {
    FILE *file = fopen("/proc/meminfo", "r");
    unsigned long long kib = 0;
    char line[128];
    while (file && kib == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "MemAvailable:", 13) == 0) kib = strtoull(line + 13, NULL, 10);
    if (file) fclose(file);
    const uint64_t share = hdi_quota_memory("/proc/self/cgroup", "/sys/fs/cgroup");
    const uint64_t left = (uint64_t)kib * 1024;
    *out_bytes = left < share ? left : share;
    return kib > 0;
}

uint32_t hdi_os_processor_count(void) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t count = online > 0 ? (uint32_t)online : 1;
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set) > 0 ? (uint32_t)CPU_COUNT(&set) : 1;
    const uint32_t share = hdi_quota_processors("/proc/self/cgroup", "/sys/fs/cgroup");
    if (share < count) count = share;
#endif
    return count;
}

void hdi_os_processor_name(char *out, size_t room) {
    snprintf(out, room, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(out, room, "%s", colon + 2);
        break;
    }
    fclose(file);
}

bool hdi_os_take_tiles(void) {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}

bool hdi_os_at_fork(void (*in_child)(void)) { return pthread_atfork(NULL, NULL, in_child) == 0; }
long hdi_os_process(void) { return (long)getpid(); }
bool hdi_os_random(void *out, size_t bytes) { return getentropy(out, bytes) == 0; }

bool hdi_os_has_home(void) {
    char room[4096];
    struct passwd entry, *found = NULL;
    return getenv("HOME") || (getpwuid_r(getuid(), &entry, room, sizeof room, &found) == 0 && found);
}

bool hdi_os_cache_root(char *out, size_t room) {
    const char *user = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (user && user[0] == '/') length = snprintf(out, room, "%s", user);
    else if (home && home[0] == '/') length = snprintf(out, room, "%s/.cache", home);
    return length > 0 && (size_t)length < room;
}
