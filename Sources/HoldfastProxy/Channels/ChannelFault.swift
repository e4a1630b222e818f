// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    /// Why a ``ByteChannel`` can be read or written no further.
    package struct ChannelFault: Error, Sendable, CustomStringConvertible {
        /// The kinds of fault.
        package enum Kind: Sendable, Hashable {
            /// This side closed the channel.
            case closed
            /// The connection broke, or the peer closed it while something was being written.
            case broken
            /// The deadline of a read passed; the channel is as it was.
            case readTimedOut
            /// The peer took nothing for the time given; what was written may have left in part.
            case writeStalled
        }

        /// The kind.
        package let kind: Kind
        /// What the channel reported, if anything.
        package let cause: (any Error)?

        /// A fault.
        package init(_ kind: Kind, cause: (any Error)? = nil) {
            self.kind = kind
            self.cause = cause
        }

        package var description: String {
            let text =
                switch kind {
                case .closed: "The connection was closed on this side."
                case .broken: "The connection broke."
                case .readTimedOut: "Nothing came for too long."
                case .writeStalled: "The peer took nothing for too long."
                }
            return text + (cause.map { " (\($0))" } ?? "")
        }
    }
#endif
