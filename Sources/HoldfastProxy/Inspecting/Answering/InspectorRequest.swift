// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// A request to the inspector, whatever server it came in by.
    struct InspectorRequest: Sendable {
        let method: RequestMethod
        /// As it stood in the request line.
        let target: String
        let fields: HeaderFields
        let body: RequestBody
        /// The numeric address it came from; nil: not known.
        let remoteAddress: String?

        /// The target up to its query.
        var path: Substring { target.prefix { $0 != "?" } }

        /// The value of an argument of the query, decoded; the first one of its name, nil where there is none.
        func argument(_ name: String) -> String? {
            guard let mark = target.firstIndex(of: "?") else { return nil }
            for argument in target[target.index(after: mark)...].split(separator: "&", maxSplits: 15) {
                let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2, parts[0] == name else { continue }
                return parts[1].replacing("+", with: " ").removingPercentEncoding
            }
            return nil
        }

        /// All of its content.
        ///
        /// - Throws: ``ServiceError`` `.bodyTooLarge` beyond the limit, and what reading it failed with.
        func content(upTo limit: Int) async throws -> ByteChunk {
            switch body.form {
            case .none, .requestStream: return ByteChunk()
            case .bytes(let bytes): return try await ResponseBody(bytes).collect(upTo: limit)
            case .oneShot(let length, let source):
                return try await ResponseBody(source, length: length).collect(upTo: limit)
            case .factory(let length, let make):
                return try await ResponseBody(try await make(), length: length).collect(upTo: limit)
            case .file:
                throw ServiceError(.unsupported, "The inspector takes no files; send the content itself.")
            }
        }
    }
#endif
