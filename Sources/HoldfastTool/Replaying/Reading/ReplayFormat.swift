// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import HoldfastCommand

    /// The forms of input that can be replayed.
    enum ReplayFormat: String, ExpressibleByArgument, CaseIterable, Sendable {
        /// Told by the name, else by the first byte.
        case auto
        /// An access log in the common or combined form.
        case log
        /// An HTTP archive, as browsers export it.
        case har
        /// Requests in 12 bytes each.
        case trace

        /// The form of a source that is not told by its name.
        static func sniff(_ start: Data, _ name: String) throws(CommandFailure) -> ReplayFormat {
            if start.starts(with: [0x1F, 0x8B]) {
                throw CommandFailure("\(name) is compressed; write: zcat \(name) | holdfast replay -")
            }
            if start.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) || start.starts(with: Array("BZh".utf8))
                || start.starts(with: [0xFD, 0x37])
            {
                throw CommandFailure("\(name) is compressed; unpack it into: holdfast replay -")
            }
            let text = start.starts(with: [0xEF, 0xBB, 0xBF]) ? start.dropFirst(3) : start
            let first = text.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
            if first == UInt8(ascii: "{") { return .har }
            if start.prefix(4_096).contains(0) {
                throw CommandFailure("\(name) is no text; write --format trace if it holds requests in 12 bytes each")
            }
            return .log
        }

        /// The form that a name tells; nil where it tells none.
        init?(name: String) {
            let lower = name.lowercased()
            if lower.hasSuffix(".har") {
                self = .har
            } else if lower.hasSuffix(".trace") {
                self = .trace
            } else {
                return nil
            }
        }
    }
#endif
