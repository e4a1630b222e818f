// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics

    /// The fields that are for the next hop alone, and how they stay behind (RFC 9110 §7.6.1).
    enum HopByHopFields {
        /// The fields of a request that go on to the origin.
        ///
        /// Gone are the connection's own, those that Connection names, Proxy-Authorization, which is for a proxy and for no one behind it, Host,
        /// which the transport sets to the origin, Content-Length, which it makes from the content, and Expect, which the server has
        /// answered by then. Connection cannot name Cache-Control: that is for all on the way.
        static func requestFields(_ fields: HeaderFields) -> HeaderFields {
            remaining(fields, without: requestBound, sparing: requestSpared)
        }

        /// The fields of a response that go on to the client.
        ///
        /// Connection cannot take away what caches go by. What is for the client of a proxy (RFC 9110 §11.7) passes: a gateway is the
        /// origin to its clients.
        static func responseFields(_ fields: HeaderFields) -> HeaderFields {
            remaining(fields, without: connectionBound, sparing: responseSpared)
        }

        private static func remaining(
            _ fields: HeaderFields,
            without dropped: Set<FieldName>,
            sparing spared: Set<FieldName>
        ) -> HeaderFields {
            guard fields.contains(where: { dropped.contains($0.name) }) else { return fields }
            guard fields.contains(.connection) else {
                var kept = fields
                kept.removeAll { dropped.contains($0.name) }
                return kept
            }
            var dropped = dropped
            for line in fields where line.name == .connection {
                for option in line.value.split(separator: ",") {
                    let name = FieldName(String(option.trimming(while: { $0 == " " || $0 == "\t" })))
                    if let name, !spared.contains(name) { dropped.insert(name) }
                }
            }
            var kept = fields
            kept.removeAll { dropped.contains($0.name) }
            return kept
        }

        private static let connectionBound: Set<FieldName> = [
            .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade,
        ]

        private static let requestSpared: Set<FieldName> = [.cacheControl]
        private static let responseSpared: Set<FieldName> = [.age, .cacheControl, .date, .expires, .vary]
        private static let requestBound = connectionBound.union([.host, .contentLength, .expect, .proxyAuthorization])
    }

    extension Substring {
        /// The part without what the predicate takes at its ends.
        fileprivate func trimming(while isTrimmed: (Character) -> Bool) -> Substring {
            var rest = drop(while: isTrimmed)
            while let last = rest.last, isTrimmed(last) { rest.removeLast() }
            return rest
        }
    }
#endif
