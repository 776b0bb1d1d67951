// Loads this module's classes once more, so that they begin anew, or without some of what they need.
package dev.comeback

import java.io.File
import java.net.URLClassLoader

internal open class FreshLoader(
    without: (File) -> Boolean = { false },
) : URLClassLoader(
        System
            .getProperty("java.class.path")
            .split(File.pathSeparator)
            .map(::File)
            .filterNot(without)
            .map { it.toURI().toURL() }
            .toTypedArray(),
        getPlatformClassLoader(),
    )
