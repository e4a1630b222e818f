// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which errors may be held as an answer about the resource, and which responses may not be held at all.
extension StatusCode {
    /// Whether a response with this status must never be stored, whatever its fields say: 428, 429, 431 and 511
    /// (RFC 6585 §3 to §6), and 425, which is about a connection that has not finished its handshake (RFC 8470 §5.2).
    public var forbidsStoring: Bool {
        switch rawValue {
        case 425, 428, 429, 431, 511: true
        default: false
        }
    }

    /// Whether the status is an error that tells something of the resource, for anyone who asks.
    ///
    /// False for those that are about one user (401, 407), one connection or moment (408, 421, 425, 426, 429), or what one
    /// request said (406, 412, 413, 415, 416, 417, 428, 431), and for a network that wants a log-in first (511).
    public var isErrorOfResource: Bool {
        switch rawValue {
        case 401, 406, 407, 408, 412, 413, 415, 416, 417, 421, 425, 426, 428, 429, 431, 511: false
        case 400...599: true
        default: false
        }
    }
}

extension ResponseHead {
    /// Whether a cache may count the response as fresh for a time of its own choosing although it is an error and says
    /// nothing of it; see ``CacheOptions/negativeLifetime``.
    ///
    /// With Retry-After the server names the time at which it wants to be asked again, and holding the response for another
    /// one would be against its word.
    public var allowsNegativeCaching: Bool {
        status.isErrorOfResource && !fields.contains(.retryAfter) && !statesFreshness
    }

    private var statesFreshness: Bool {
        let cacheControl = CacheControl(fields)
        return cacheControl.maxAge != nil || cacheControl.sMaxAge != nil || fields.contains(.expires)
    }
}
