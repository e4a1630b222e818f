// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    /// How much of a message's head is read before it is refused.
    package struct HeadLimits: Sendable, Hashable {
        /// The bytes of a head, from the start line through the empty line; 64 KiB by default.
        package var bytes: Int
        /// The field lines of a head; 100 by default, as in Apache.
        package var fieldLines: Int
        /// The bytes of a request's target; 8 KiB by default, as in nginx and Apache.
        package var target: Int

        /// Limits; a longer target is answered 414, more bytes or lines 431 (RFC 9110 §15.5.15, RFC 6585 §5).
        package init(bytes: Int = 64 << 10, fieldLines: Int = 100, target: Int = 8 << 10) {
            self.bytes = max(bytes, 64)
            self.fieldLines = max(fieldLines, 1)
            self.target = max(target, 1)
        }
    }
#endif
