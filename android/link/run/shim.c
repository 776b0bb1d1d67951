/* What bionic has and glibc has not, so that a library for Android can be loaded on Linux: `cargo xtask android run`. */
extern int *__errno_location(void);

int *__errno(void) { return __errno_location(); }

void android_set_abort_message(const char *message) { (void)message; }
