// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import HoldfastSemantics

    /// Names of header fields off the wire; those that most messages bear are made once.
    package enum FieldNames {
        private struct Known: Sendable {
            let bytes: [UInt8]
            let name: FieldName
        }

        private static let byLength: [[Known]] = {
            var table = [[Known]](repeating: [], count: 33)
            for spelling in common {
                for text in [spelling, spelling.lowercased()] where text.utf8.count < table.count {
                    guard let name = FieldName(text) else { continue }
                    table[text.utf8.count].append(Known(bytes: Array(text.utf8), name: name))
                }
            }
            return table
        }()

        /// The name that the bytes spell; nil where they are no token.
        package static func name(_ bytes: UnsafeRawBufferPointer) -> FieldName? {
            if bytes.count < byLength.count {
                for known in byLength[bytes.count] where known.bytes.withUnsafeBytes({ equal($0, bytes) }) {
                    return known.name
                }
            }
            return FieldName(FieldText.string(bytes))
        }

        private static func equal(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
            for index in 0..<left.count where left[index] != right[index] { return false }
            return true
        }

        private static let common = [
            "Host", "User-Agent", "Accept", "Accept-Encoding", "Accept-Language", "Accept-Ranges",
            "Access-Control-Allow-Origin",
            "Age", "Allow", "Alt-Svc", "Authorization", "Cache-Control", "Connection", "Content-Disposition",
            "Content-Encoding", "Content-Language", "Content-Length", "Content-Location", "Content-Range",
            "Content-Security-Policy", "Content-Type", "Cookie", "Date", "ETag", "Expect", "Expires", "Forwarded",
            "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive",
            "Last-Modified", "Link", "Location", "Origin", "Pragma", "Priority", "Proxy-Connection", "Range", "Referer",
            "Retry-After", "Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-User", "Server",
            "Set-Cookie",
            "Strict-Transport-Security", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Upgrade-Insecure-Requests",
            "Vary", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-ID",
            "X-Content-Type-Options", "X-Frame-Options",
        ]
    }
#endif
