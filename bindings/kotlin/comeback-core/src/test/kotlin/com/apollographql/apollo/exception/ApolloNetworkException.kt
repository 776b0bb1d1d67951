// A stand-in for Apollo's exception of this name.
package com.apollographql.apollo.exception

internal class ApolloNetworkException(
    cause: Throwable?,
) : RuntimeException("Failed to execute GraphQL http network request", cause)
