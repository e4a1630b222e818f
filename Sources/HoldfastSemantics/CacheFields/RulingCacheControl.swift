// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The fields of a response that a cache obeys: Cache-Control and Expires, or a targeted field alone (RFC 9213 §2.2).
struct RulingCacheControl {
    /// The directives to obey.
    let cacheControl: CacheControl

    /// Whether Expires counts: it stands there, and no targeted field rules in its place.
    let hasExpires: Bool

    /// - Parameters:
    ///   - fields: the response's fields.
    ///   - targets: the cache's target list; without one this is Cache-Control.
    init(_ fields: HeaderFields, targets: [FieldName]) {
        if !targets.isEmpty, let targeted = TargetedCacheControl(fields, targets: targets) {
            cacheControl = targeted.cacheControl
            hasExpires = false
        } else {
            cacheControl = CacheControl(fields)
            hasExpires = fields.contains(.expires)
        }
    }
}
