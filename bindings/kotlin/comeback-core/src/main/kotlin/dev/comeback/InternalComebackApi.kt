// Marks what only Comeback's own adapters may use.
package dev.comeback

/**
 * For the adapters of this project (OkHttp, Ktor, …) only. It may change in any release; an app has no use for it.
 *
 * @suppress
 */
@RequiresOptIn(
    message = "For Comeback's own adapters; it may change in any release.",
    level = RequiresOptIn.Level.ERROR,
)
// So that the documentation shows it where `@suppress` was forgotten, and `cargo xtask docs` fails.
@MustBeDocumented
@Retention(AnnotationRetention.BINARY)
@Target(
    AnnotationTarget.CLASS,
    AnnotationTarget.CONSTRUCTOR,
    AnnotationTarget.FUNCTION,
    AnnotationTarget.PROPERTY,
    AnnotationTarget.PROPERTY_GETTER,
)
public annotation class InternalComebackApi
