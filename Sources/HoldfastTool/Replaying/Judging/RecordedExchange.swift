// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSemantics

    /// A request and its response with all their fields, as a HAR file has them.
    struct RecordedExchange: Sendable {
        var request: RequestHead
        let response: ResponseHead
        let requestTime: Timestamp
        let responseTime: Timestamp
        /// Bytes of the body; nil where the file does not tell.
        let size: Int?

        /// What a file has instead of an exchange.
        enum Failure: Error, Hashable {
            /// It is broken; why.
            case malformed(String)
            /// It is a request that no cache looks up; why, and its method.
            case bypass(String, method: String)
        }

        /// Reads an entry.
        ///
        /// - Parameters:
        ///   - entry: one exchange of a HAR file.
        ///   - ignoresReloads: whether Cache-Control, Pragma and conditions of the request are left out.
        init(_ entry: HARFile.Entry, ignoresReloads: Bool) throws(Failure) {
            guard let start = LogTime.iso8601(Array(entry.startedDateTime.utf8)[...]) else {
                throw .malformed("startedDateTime is no time")
            }
            guard let method = RequestMethod(validating: entry.request.method) else {
                throw .malformed("request.method is no method")
            }
            guard let target = try? TargetURI(mapping: entry.request.url) else {
                throw .bypass("\(CacheReason.target)", method: method.rawValue)
            }
            let status = Int(exactly: entry.response.status.rounded()) ?? 0
            if status == 0 { throw .bypass("no answer", method: method.rawValue) }
            var fields = Self.fields(entry.request.headers)
            if ignoresReloads {
                for name in [FieldName.cacheControl, .pragma, .ifNoneMatch, .ifModifiedSince] { fields.removeAll(name) }
            }
            request = RequestHead(method: method, target: target, fields: fields)
            response = ResponseHead(status: StatusCode(status), fields: Self.fields(entry.response.headers))
            requestTime = start
            let waited = (entry.time ?? 0) - max(0, entry.timings?.receive ?? 0)
            responseTime = start.advanced(by: .milliseconds(Int64(min(max(0, waited.isFinite ? waited : 0), 1e12))))
            size =
                [entry.response.bodySize, entry.response.content?.size]
                .compactMap { $0.flatMap { Int(exactly: $0.rounded()) } }.first { $0 > 0 }
                ?? (status == StatusCode.notModified.rawValue ? nil : 0)
        }

        /// Fields as a message has them; pseudo-fields of HTTP/2 and other names that are none are left out.
        private static func fields(_ list: [HARFile.Field]?) -> HeaderFields {
            var fields = HeaderFields()
            for field in list ?? [] { fields.append(rawName: field.name, value: field.value) }
            return fields
        }
    }
#endif
