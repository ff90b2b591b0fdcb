/* Functions of the server's that take any number of arguments. Each takes those formats that
 * the module uses, and hands them on; any other is a fault. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fake_logged(const char *level, const char *text);
void fake_replicated(void *ctx, const char *command, void *key, const char *bytes, size_t len);
void fake_emitted(void *io, const char *command, void *key, const char *bytes, size_t len);
void *fake_called(void *ctx, const char *command, void *key);

static void need(const char *format, const char *known) {
    if (strcmp(format, known) != 0) {
        fprintf(stderr, "the fake server takes the format '%s', not '%s'\n", known, format);
        abort();
    }
}

void fake_log(void *ctx, const char *level, const char *format, ...) {
    (void)ctx;
    need(format, "%s");
    va_list args;
    va_start(args, format);
    fake_logged(level, va_arg(args, const char *));
    va_end(args);
}

typedef void taker(void *where, const char *command, void *key, const char *bytes, size_t len);

/* A key and bytes. */
static void take(taker *to, void *where, const char *command, const char *format, va_list args) {
    need(format, "sb");
    void *key = va_arg(args, void *);
    const char *bytes = va_arg(args, const char *);
    to(where, command, key, bytes, va_arg(args, size_t));
}

int fake_replicate(void *ctx, const char *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    take(fake_replicated, ctx, command, format, args);
    va_end(args);
    return 0;
}

void fake_emit_aof(void *io, const char *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    take(fake_emitted, io, command, format, args);
    va_end(args);
}

void *fake_call(void *ctx, const char *command, const char *format, ...) {
    /* Of its configuration it tells nothing. */
    if (strcmp(command, "CONFIG") == 0) {
        need(format, "Ecc");
        return NULL;
    }
    need(format, "SEs");
    va_list args;
    va_start(args, format);
    void *key = va_arg(args, void *);
    va_end(args);
    return fake_called(ctx, command, key);
}
