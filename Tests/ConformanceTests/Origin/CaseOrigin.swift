// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The origin server of one case: answers as the case says, in the time of a clock that stands still.
final class CaseOrigin: Transport {
    /// The request field by which the client tells the number of its request, as a request on its way through caches
    /// carries nothing else that would.
    static let numberField = "Client-Request-Number"

    /// One exchange as the origin saw it.
    struct Exchange: Sendable {
        let number: Int
        let method: String
        let requestFields: HeaderFields
        /// Status 0: the connection was closed instead.
        let status: Int
        /// The lines that the case itself wants sent, those first that must arrive.
        let responseFields: HeaderFields
        let mustArrive: Set<FieldName>
    }

    let marker: String
    private let requests: [CaseRequest]
    private let clock: ManualClock
    private let seen = Mutex<[Exchange]>([])

    /// - Parameters:
    ///   - marker: a string unique to the case: the default body.
    ///   - clock: moved on by `response_pause`.
    init(_ requests: [CaseRequest], marker: String, clock: ManualClock) {
        self.requests = requests
        self.marker = marker
        self.clock = clock
    }

    /// Every exchange so far, in the order of arrival.
    var exchanges: [Exchange] { seen.withLock { $0 } }

    /// What the origin does with a request.
    struct Reply: Sendable {
        let interim: [ResponseHead]
        let status: Int
        let fields: HeaderFields
        /// The content; nil where the response has none.
        let body: String?
    }

    /// Takes a request down and answers it.
    ///
    /// - Parameter path: the target without its query.
    /// - Returns: nil where the connection is to be closed instead.
    func reply(to method: String, _ path: String, _ fields: HeaderFields) throws(ServiceError) -> Reply? {
        guard let number = FieldName(CaseOrigin.numberField).flatMap({ fields[$0] }).flatMap({ Int($0) }),
            requests.indices.contains(number - 1)
        else { throw ServiceError(.badRequest, "The request bears no number of this case.", progress: .notSent) }
        let config = requests[number - 1]
        let now = clock.timestamp

        let lines = config.disconnects ? [] : sentLines(config, below: path, now: now)
        let status = config.disconnects ? 0 : self.status(config, number: number, requestFields: fields)
        let exchange = Exchange(
            number: number,
            method: method,
            requestFields: fields,
            status: status,
            responseFields: HeaderFields(lines.map(\.line)),
            mustArrive: Set(lines.filter(\.mustArrive).map(\.line.name))
        )
        let count = seen.withLock { seen in
            seen.append(exchange)
            return seen.count
        }
        if config.disconnects { return nil }
        if config.responsePause > 0 { clock.advance(by: .seconds(config.responsePause)) }

        var response = HeaderFields(exchange.responseFields)
        response.append(rawName: "Server-Request-Count", value: String(count))
        response.append(rawName: "Client-Request-Count", value: String(number))
        response.append(rawName: "Server-Now", value: String(now.millisecondsSinceEpoch))
        response.append(rawName: "Server-Base-Url", value: path)
        if !response.contains(.contentType) { response.append(.contentType, "text/plain") }
        if !response.contains(.date) { response.append(.date, HTTPDate(now).description) }
        let isEmpty = method == "HEAD" || status == 204 || status == 304
        return Reply(
            interim: config.interimResponses.map(\.head),
            status: status,
            fields: response,
            body: isEmpty ? nil : content(of: config)
        )
    }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let fields = HeaderFields(request.allHTTPHeaderFields ?? [:])
        guard let reply = try reply(to: request.httpMethod ?? "GET", request.url?.path ?? "/", fields) else {
            throw ServiceError(.connectionLost, "The origin closed the connection.", progress: .bodySent)
        }
        for interim in reply.interim { context.report(interim: interim) }
        return Response(
            status: StatusCode(rawValue: reply.status),
            fields: reply.fields,
            body: reply.body.map { ResponseBody(ByteChunk(copying: $0.utf8)) } ?? ResponseBody(),
            url: request.url
        )
    }

    /// The body of a response: the case's own, else the string unique to it.
    func content(of config: CaseRequest) -> String {
        if let body = config.responseBody, !body.isEmpty { return body }
        return marker
    }

    private func sentLines(
        _ config: CaseRequest,
        below path: String,
        now: Timestamp
    ) -> [(line: HeaderFields.Line, mustArrive: Bool)] {
        config.responseFields.compactMap { field in
            guard let name = FieldName(field.name) else { return nil }
            let isOld = config.oldDateNames.contains(field.name.lowercased())
            var value = field.value.spelled(for: field.name, now: now, inOldForm: isOld)
            if config.placesLocationsBelow, name == .location || name == .contentLocation {
                value = value.isEmpty ? path : "\(path)/\(value)"
            }
            return (HeaderFields.Line(name: name, value: value), field.mustArrive)
        }
    }

    /// A validation that the case expects is answered 304 when it matches what was sent before, and 999 when not.
    private func status(_ config: CaseRequest, number: Int, requestFields: HeaderFields) -> Int {
        guard config.expectedType?.isValidated == true else { return config.responseStatus ?? 200 }
        let previous = seen.withLock { $0.last { $0.number < number } }
        let tag = previous?.responseFields[.eTag]
        let modified = previous?.responseFields[.lastModified]
        let matches =
            (tag != nil && requestFields[.ifNoneMatch] == tag)
            || (modified != nil && requestFields[.ifModifiedSince] == modified)
        return matches ? 304 : 999
    }
}

extension InterimHead {
    /// The interim response as a transport reports it.
    var head: ResponseHead {
        var fields = HeaderFields()
        for line in self.fields where line.count == 2 { fields.append(rawName: line[0], value: line[1]) }
        return ResponseHead(status: StatusCode(rawValue: status), fields: fields)
    }

    /// An interim response as a client received it.
    init(_ head: ResponseHead) {
        self.init(
            status: head.status.rawValue,
            fields: head.fields.map { [$0.name.rawName.lowercased(), $0.value] }
        )
    }
}
