/* Replays a corpus through a fuzz target, for `make check` and compilers without libFuzzer. The corpus is named by FUZZ_CORPUS below
 * t/fuzz/corpus, or files are given as arguments. Replaying nothing is an error. Each input is also tried cut at every length (up to a limit), so that
 * a target meets truncated bytes too. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

#define REPLAY_BYTES (1024 * 1024)
#define MAX_CUTS  512

/* The bytes in a block of exactly their size, so that a sanitizer sees any step beyond. */
static void feed(const unsigned char *bytes, size_t size)
{
    unsigned char *own = malloc(size > 0 ? size : 1);

    if (own == NULL) {
        exit(1);
    }
    memcpy(own, bytes, size);
    (void)LLVMFuzzerTestOneInput(own, size);
    free(own);
}

static int replay(const char *path)
{
    static unsigned char bytes[REPLAY_BYTES];
    FILE *file = fopen(path, "rb");
    size_t size;
    size_t cut;

    if (file == NULL) {
        perror(path);
        return 0;
    }
    size = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    feed(bytes, size);
    for (cut = 0; cut < size && cut < MAX_CUTS; cut++) {
        feed(bytes, cut);
    }
    return 1;
}

static int replay_all(const char *directory)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    int count = 0;

    if (dir == NULL) {
        perror(directory);
        return 0;
    }
    for (entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[8192];

        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        count += replay(path);
    }
    (void)closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    const char *top = getenv("top_srcdir");
    char directory[4096];
    int count = 0;
    int i;

    if (LLVMFuzzerInitialize != NULL) {
        (void)LLVMFuzzerInitialize(&argc, &argv);
    }
    for (i = 1; i < argc; i++) {
        count += replay(argv[i]);
    }
    if (argc == 1) {
        (void)snprintf(directory, sizeof(directory), "%s/t/fuzz/corpus/%s", top != NULL ? top : ".",
                       FUZZ_CORPUS);
        count = replay_all(directory);
    }
    printf("1..1\n%sok 1 - %d inputs of %s replayed\n", count > 0 ? "" : "not ", count, FUZZ_CORPUS);
    return count > 0 ? 0 : 1;
}
