/* Loads the core's library, asks its hub for an edge, and lets it panic: `cargo xtask android run`, `cargo xtask natives`. */
#ifdef _WIN32
#include <windows.h>
static void *dlopen(const char *file, int flags) { (void)flags; return (void *)LoadLibraryA(file); }
static void *dlsym(void *library, const char *name) { return (void *)GetProcAddress((HMODULE)library, name); }
static const char *dlerror(void) { return "the library cannot be loaded"; }
#define RTLD_NOW 0
#else
#include <dlfcn.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct { uint64_t capacity, length; uint8_t *data; } Buffer;
typedef struct { int8_t code; Buffer error; } Status;

static void *find(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) { fprintf(stderr, "%s is missing\n", name); exit(1); }
    return found;
}

static int64_t number(const uint8_t *bytes, int length) {
    int64_t value = 0;
    for (int index = 0; index < length; index++) value = (value << 8) | bytes[index];
    return value;
}

int main(int count, char **arguments) {
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    Status status = {0};

    uint64_t (*make)(Status *) = find(library, "uniffi_comeback_fn_constructor_connectivityhub_new");
    Buffer (*available)(uint64_t, int64_t, int64_t, int8_t, int8_t, int8_t, Status *) =
        find(library, "uniffi_comeback_fn_method_connectivityhub_available");
    uint64_t hub = make(&status);
    if (status.code != 0) { fprintf(stderr, "no hub: %d\n", status.code); return 1; }
    Buffer snapshot = available(hub, 5, 1, 0, 0, 1, &status);
    if (status.code != 0 || snapshot.length != 28) { fprintf(stderr, "no snapshot: %d, %d bytes\n", status.code, (int)snapshot.length); return 1; }
    /* State online, since 5, epoch 1, path 0. */
    if (number(snapshot.data, 4) != 4 || number(snapshot.data + 4, 8) != 5 || number(snapshot.data + 12, 8) != 1 || number(snapshot.data + 20, 8) != 0) {
        fprintf(stderr, "another snapshot\n");
        return 1;
    }

    void (*panic)(Status *) = find(library, "uniffi_comeback_fn_func_provoke_panic");
    panic(&status);
    if (status.code != 2) { fprintf(stderr, "a panic became %d\n", status.code); return 1; }
    puts("an edge, and a panic that did no harm");
    return 0;
}
