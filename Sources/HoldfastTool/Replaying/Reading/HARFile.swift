// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation

    /// What a HAR file (1.1, 1.2) says of its exchanges, as far as a cache cares.
    struct HARFile: Decodable {
        struct Log: Decodable {
            let entries: [Item]
        }

        /// An entry, or why it is none: one that is broken takes no other with it.
        struct Item: Decodable {
            let entry: Result<Entry, any Error>

            init(from decoder: any Decoder) {
                entry = Result { try Entry(from: decoder) }
            }
        }

        struct Entry: Decodable {
            let startedDateTime: String
            /// Milliseconds from the start to the last byte.
            let time: Double?
            let request: Request
            let response: Response
            let timings: Timings?
        }

        struct Request: Decodable {
            let method: String
            let url: String
            let headers: [Field]?
        }

        struct Response: Decodable {
            let status: Double
            let headers: [Field]?
            /// Bytes of the body as it was sent; -1 or 0 where it came from a cache or nobody knows.
            let bodySize: Double?
            let content: Content?
        }

        struct Content: Decodable {
            /// Bytes of the body, codings undone.
            let size: Double?
        }

        struct Field: Decodable {
            let name: String
            let value: String
        }

        struct Timings: Decodable {
            let receive: Double?
        }

        let log: Log

        /// Why a part of a file is not what it should be: the path to it, in a few words.
        static func words(_ error: any Error) -> String {
            func path(_ context: DecodingError.Context, _ last: String? = nil) -> String {
                let names = context.codingPath.filter {
                    $0.intValue == nil && !["log", "entries"].contains($0.stringValue)
                }
                let text = (names.map(\.stringValue) + [last].compactMap { $0 }).joined(separator: ".")
                return text.isEmpty ? "the entry" : text
            }
            switch error as? DecodingError {
            case .keyNotFound(let key, let context): return "no \(path(context, key.stringValue))"
            case .typeMismatch(_, let context), .valueNotFound(_, let context):
                return "\(path(context)) is of another type"
            case .dataCorrupted(let context): return "\(path(context)) cannot be read"
            default: return "\(error)"
            }
        }
    }
#endif
