/* Policy documents in files and directories: see policyctl.h.
 *
 * A directory holds one file a section, and one a connector, so that changes are read in diffs.  Every section has its file, empty
 * or not: a section that is nowhere is one that apply leaves alone. */
#include "policyctl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../proto/mcp_body.h"

#define MAX_PATH 4096
#define MAX_FILES 10000
#define FILE_VERSION 1
#define CONNECTORS "connectors"
#define OF_ONE "connector-" /* begins the name of a file that holds one connector */
#define SUFFIX ".json"

/* Which members make an object of a section this one. Without the first of them, its content does. */
static const struct {
    const char *section;
    const char *members[2];
} identities[] = {
    {"roles", {"name", NULL}},        {CONNECTORS, {"slug", NULL}},
    {"connections", {"label", NULL}}, {"settings", {"key", "client"}},
    {"recipes", {"name", NULL}},      {"toolboxes", {"name", NULL}},
    {"restrictions", {"name", NULL}},
};

static int refuse(char *why, size_t size, const char *what, const char *path, const char *reason)
{
    (void)snprintf(why, size, "%.200s %s: %.200s", path, what, reason);
    return -1;
}

/* --- names ----------------------------------------------------------------- */

static int ends_in(const char *text, const char *end)
{
    size_t bytes = strlen(text), end_bytes = strlen(end);

    return bytes > end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

int ctl_files_is_directory(const char *path)
{
    struct stat is;
    size_t bytes = strlen(path);

    return (bytes > 0 && path[bytes - 1] == '/') || (stat(path, &is) == 0 && S_ISDIR(is.st_mode));
}

static int join_path(char *into, size_t size, const char *directory, const char *name)
{
    size_t bytes = strlen(directory);
    int used = snprintf(into, size, "%s%s%s", directory,
                        bytes > 0 && directory[bytes - 1] == '/' ? "" : "/", name);

    return used > 0 && (size_t)used < size ? 0 : -1;
}

typedef struct names {
    char **names;
    size_t count, room;
} names_t;

static void free_names(names_t *names)
{
    size_t i;

    for (i = 0; i < names->count; i++) {
        free(names->names[i]);
    }
    free(names->names);
}

static int add_name(names_t *names, const char *name)
{
    if (names->count == names->room) {
        size_t room = names->room == 0 ? 32 : names->room * 2;
        char **more = room > MAX_FILES * 2 ? NULL : realloc(names->names, room * sizeof *more);

        if (more == NULL) {
            return -1;
        }
        names->names = more;
        names->room = room;
    }
    names->names[names->count] = strdup(name);
    return names->names[names->count++] == NULL ? -1 : 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the *.json of a directory, sorted; hidden ones are none of ours. */
static int list_files(const char *directory, names_t *ret, char *why, size_t size)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    int failed = 0;

    if (dir == NULL) {
        return refuse(why, size, "can't be read", directory, strerror(errno));
    }
    for (entry = readdir(dir); entry != NULL && !failed; entry = readdir(dir)) {
        if (entry->d_name[0] != '.' && ends_in(entry->d_name, SUFFIX)) {
            failed = ret->count >= MAX_FILES || add_name(ret, entry->d_name) != 0;
        }
    }
    (void)closedir(dir); /* only read */
    if (failed) {
        return refuse(why, size, "can't be read", directory, "it has too many files");
    }
    if (ret->count > 0) {
        qsort(ret->names, ret->count, sizeof *ret->names, by_text);
    }
    return 0;
}

/* --- reading --------------------------------------------------------------- */

typedef struct joining {
    json_t *document;
    json_t *places; /* identity -> name of the file that holds it */
    const char *file;
    char *why;
    size_t size;
} joining_t;

/* What the object is told apart by, as text; for free(). NULL: by nothing that is known here. */
static char *identity_of(const char *section, const json_t *object)
{
    json_t *parts = NULL;
    char *text;
    size_t i;

    for (i = 0; i < sizeof identities / sizeof identities[0]; i++) {
        if (strcmp(identities[i].section, section) == 0) {
            json_t *first = json_object_get(object, identities[i].members[0]);
            json_t *second = identities[i].members[1] == NULL
                                 ? NULL
                                 : json_object_get(object, identities[i].members[1]);

            parts = first == NULL ? json_pack("[s, O]", section, object)
                                  : json_pack("[s, O, O*]", section, first, second);
        }
    }
    text = parts == NULL ? NULL : json_dumps(parts, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(parts);
    return text;
}

/* Notes where an object is; -1 when it is elsewhere already. Within one file policyd says it better. */
static int note_place(joining_t *joining, const char *section, const json_t *object)
{
    char *identity = identity_of(section, object);
    const char *before = identity == NULL ? NULL : mcp_json_str(joining->places, identity);
    int failed = before != NULL && strcmp(before, joining->file) != 0;

    if (failed) {
        (void)snprintf(joining->why, joining->size,
                       "%.160s and %.160s hold the same object of %.40s", before, joining->file,
                       section);
    } else if (identity != NULL) {
        failed = json_object_set_new(joining->places, identity, json_string(joining->file));
    }
    free(identity);
    return failed ? -1 : 0;
}

static int join_section(joining_t *joining, const char *section, json_t *list)
{
    json_t *whole = json_object_get(joining->document, section);
    size_t i;
    json_t *object;

    if (!json_is_array(list)) {
        return refuse(joining->why, joining->size, "is no policy document", joining->file,
                      "a section is no list");
    }
    json_array_foreach(list, i, object)
    {
        if (note_place(joining, section, object) != 0) {
            return -1;
        }
    }
    if (whole == NULL) {
        return json_object_set_new(joining->document, section, json_incref(list));
    }
    return json_array_extend(whole, list);
}

static int join_document(joining_t *joining, json_t *document)
{
    const char *name;
    json_t *value;

    json_object_foreach(document, name, value)
    {
        json_t *before = json_object_get(joining->document, name);

        if (strcmp(name, "version") == 0) {
            if (before != NULL && !json_equal(before, value)) {
                return refuse(joining->why, joining->size, "has another version", joining->file,
                              "all files of a directory have one");
            }
            if (json_object_set_new(joining->document, name, json_incref(value)) != 0) {
                return -1;
            }
        } else if (join_section(joining, name, value) != 0) {
            return -1;
        }
    }
    return 0;
}

static json_t *read_directory(const char *directory, char *why, size_t size)
{
    joining_t joining = {json_object(), json_object(), NULL, why, size};
    names_t names = {NULL, 0, 0};
    int status = list_files(directory, &names, why, size);
    size_t i;

    if (status == 0 && names.count == 0) {
        status = refuse(why, size, "holds no document", directory, "there is no file *.json in it");
    }
    for (i = 0; status == 0 && i < names.count; i++) {
        char path[MAX_PATH];
        json_t *document = NULL;

        (void)snprintf(why, size, "out of memory"); /* until something says it better */
        status = join_path(path, sizeof path, directory, names.names[i]);
        if (status == 0) {
            document = ctl_args_file(path, why, size);
            joining.file = names.names[i];
            status = document == NULL ? -1 : join_document(&joining, document);
        }
        json_decref(document);
    }
    free_names(&names);
    json_decref(joining.places);
    if (status != 0) {
        json_decref(joining.document);
        return NULL;
    }
    return joining.document;
}

json_t *ctl_files_read(const char *path, char *why, size_t size)
{
    return strcmp(path, "-") != 0 && ctl_files_is_directory(path) ? read_directory(path, why, size)
                                                                  : ctl_args_file(path, why, size);
}

/* --- writing --------------------------------------------------------------- */

static int write_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t put = write(fd, text, bytes);

        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return -1;
        }
        text += put;
        bytes -= (size_t)put;
    }
    return 0;
}

/* Beside the file and then over it: nobody ever reads half of one. It may hold frozen values: mkstemp() makes it 0600. */
static int write_file(const char *path, const json_t *value, char *why, size_t size)
{
    char made[MAX_PATH + 8];
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    int fd, status;

    (void)snprintf(made, sizeof made, "%.*s.XXXXXX", MAX_PATH - 1, path);
    fd = text == NULL ? -1 : mkstemp(made);
    if (fd < 0) {
        free(text);
        return refuse(why, size, "can't be written", path,
                      text == NULL ? "out of memory" : strerror(errno));
    }
    status = write_all(fd, text, strlen(text));
    status = status == 0 ? write_all(fd, "\n", 1) : status;
    status = status == 0 ? fsync(fd) : status;
    status |= close(fd);
    status = status == 0 ? rename(made, path) : status;
    if (status != 0) {
        (void)refuse(why, size, "can't be written", path, strerror(errno));
        (void)unlink(made); /* it may have its name already */
    }
    free(text);
    return status;
}

static int is_slug(const char *text)
{
    return text != NULL && *text != '\0' && strlen(text) <= 64 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

/* {file name -> document} of what a directory is to hold; new reference, NULL with why set. */
static json_t *split(const json_t *document, char *why, size_t size)
{
    json_t *files = json_object();
    const char *section;
    json_t *list;

    json_object_foreach((json_t *)(uintptr_t)document, section, list)
    {
        int is_connectors = strcmp(section, CONNECTORS) == 0;
        char name[128];
        size_t i;

        if (strcmp(section, "version") == 0) {
            continue;
        }
        for (i = 0; is_connectors && i < json_array_size(list); i++) {
            json_t *one = json_array_get(list, i);

            (void)snprintf(name, sizeof name, OF_ONE "%.64s" SUFFIX, mcp_json_str(one, "slug"));
            if (!is_slug(mcp_json_str(one, "slug")) ||
                json_object_set_new(
                    files, name,
                    json_pack("{s:i, s:[O]}", "version", FILE_VERSION, CONNECTORS, one)) != 0) {
                json_decref(files);
                (void)snprintf(why, size, "policyd answers a connector without a sound slug");
                return NULL;
            }
        }
        if (!is_slug(section)) {
            json_decref(files);
            (void)snprintf(why, size, "policyd answers a section of no sound name");
            return NULL;
        }
        (void)snprintf(name, sizeof name, "%.64s" SUFFIX, section);
        if (json_object_set_new(
                files, name,
                is_connectors
                    ? json_pack("{s:i, s:[]}", "version", FILE_VERSION, section)
                    : json_pack("{s:i, s:O}", "version", FILE_VERSION, section, list)) != 0) {
            json_decref(files);
            (void)snprintf(why, size, "out of memory");
            return NULL;
        }
    }
    return files;
}

/* Files of connectors that are no more are in the way of applying the directory, and ours to delete; any other file is not. */
static int is_stale(const json_t *files, const char *name, int has_connectors)
{
    return json_object_get(files, name) == NULL && has_connectors &&
           strncmp(name, OF_ONE, strlen(OF_ONE)) == 0;
}

static int check_others(const char *directory, const json_t *files, const names_t *names,
                        int has_connectors, char *why, size_t size)
{
    size_t i;

    for (i = 0; i < names->count; i++) {
        if (json_object_get(files, names->names[i]) == NULL &&
            !is_stale(files, names->names[i], has_connectors)) {
            (void)snprintf(why, size,
                           "%.200s holds %.120s, which this export does not write: take an empty "
                           "directory, or move it away",
                           directory, names->names[i]);
            return -1;
        }
    }
    return 0;
}

static int write_split(const char *directory, const json_t *files, const names_t *names,
                       int has_connectors, char *why, size_t size)
{
    char path[MAX_PATH];
    const char *name;
    json_t *file;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)files, name, file)
    {
        if (join_path(path, sizeof path, directory, name) != 0) {
            return refuse(why, size, "can't be written", directory, "its name is too long");
        }
        if (write_file(path, file, why, size) != 0) {
            return -1;
        }
    }
    for (i = 0; i < names->count; i++) {
        if (is_stale(files, names->names[i], has_connectors) &&
            (join_path(path, sizeof path, directory, names->names[i]) != 0 || unlink(path) != 0)) {
            return refuse(why, size, "can't be deleted", names->names[i], strerror(errno));
        }
    }
    return 0;
}

static int write_directory(const char *directory, const json_t *document, char *why, size_t size)
{
    json_t *files = split(document, why, size);
    names_t names = {NULL, 0, 0};
    int has_connectors = json_object_get(document, CONNECTORS) != NULL;
    int status = files == NULL ? -1 : 0;

    if (status == 0 && mkdir(directory, 0700) != 0 && errno != EEXIST) {
        status = refuse(why, size, "can't be made", directory, strerror(errno));
    }
    if (status == 0) {
        status = list_files(directory, &names, why, size);
    }
    if (status == 0) {
        status = check_others(directory, files, &names, has_connectors, why, size);
    }
    if (status == 0) {
        status = write_split(directory, files, &names, has_connectors, why, size);
    }
    free_names(&names);
    json_decref(files);
    return status;
}

int ctl_files_write(const char *path, const json_t *document, char *why, size_t size)
{
    return ctl_files_is_directory(path) ? write_directory(path, document, why, size)
                                        : write_file(path, document, why, size);
}
