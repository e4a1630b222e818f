// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import HoldfastSemantics

package enum NonCredentialFields {
    package static func contains(_ name: FieldName) -> Bool {
        names.contains(name) || name.canonicalName.hasPrefix("if-")
    }
    private static let names: Set<FieldName> = [
        .accept, "Accept-Charset", .acceptEncoding, .acceptLanguage, .cacheControl, .pragma, "Content-Type",
        "User-Agent", .range, "Traceparent", "Tracestate", "X-Request-ID", .idempotencyKey, "Date", "Expect",
        "Content-Length", "Host",
    ]
}
