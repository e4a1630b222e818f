// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A response: status, header field lines, a body that is bytes or a stream, and where it came from.
public struct Response: Sendable {
    /// The status code.
    public var status: StatusCode
    /// The header fields, line by line.
    public var fields: HeaderFields
    /// The body.
    public var body: ResponseBody
    /// The URL that answered: the request's, or the last one of a redirect chain.
    public var url: URL?
    /// Where it came from.
    public var source: ResponseSource
    /// When the request that got this response was sent, and when its head arrived: of the attempt that answered.
    public var requestTime: Timestamp?
    public var responseTime: Timestamp?
    /// Whether the transport has already undone the content coding that Content-Encoding names.
    public var contentDecoded: Bool
    /// Every attempt of the exchange that made it, in order; one entry for a call that succeeded at once.
    public var attempts: [AttemptRecord]

    /// What the cache did for it, and why; nil where no cache was asked. Of several caches, the outermost one's.
    public internal(set) var cacheDecision: CacheDecision?

    /// The request fields it answers, as far as this side knows them: what a cache judges by whose response it is.
    package var presentation = Presentation.unknown
    /// Whether a cache has taken the Age off its Retry-After already.
    var hasAgeDeducted = false
    /// Removes the stored entry it came from; nil where it came from none.
    var removeStored: (@Sendable () async -> Void)?

    /// A response; by default from the network, with an empty body.
    public init(
        status: StatusCode,
        fields: HeaderFields = HeaderFields(),
        body: ResponseBody = ResponseBody(),
        url: URL? = nil,
        source: ResponseSource = .network(attempts: 1),
        contentDecoded: Bool = false
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.url = url
        self.source = source
        self.contentDecoded = contentDecoded
        requestTime = nil
        responseTime = nil
        attempts = []
    }

    /// Status and fields, as the rules of HTTP look at them.
    public var head: ResponseHead {
        get { ResponseHead(status: status, fields: fields) }
        set {
            status = newValue.status
            fields = newValue.fields
        }
    }

    /// The head as those look at it who take the Age off a Retry-After themselves, which must not be done twice.
    var headForRetrying: ResponseHead { hasAgeDeducted ? head.withAgeInRetryAfter : head }

    /// The response as Foundation shows it; nil without a ``url``.
    ///
    /// Repeated field lines are joined with a comma, since its fields are a dictionary. Costs about 10 µs on Linux.
    public func makeHTTPURLResponse() -> HTTPURLResponse? {
        guard let url else { return nil }
        var joined: [String: String] = [:]
        for line in fields {
            let name = line.name.rawName
            if joined[name] == nil { joined[name] = fields[line.name] }
        }
        return HTTPURLResponse(url: url, statusCode: status.rawValue, httpVersion: "HTTP/1.1", headerFields: joined)
    }
}

/// Where a response came from; closed.
public enum ResponseSource: Sendable, Hashable {
    /// The transport, after so many attempts.
    case network(attempts: Int)
    /// The store, fresh: nothing was sent.
    case fresh
    /// The store, although stale: nothing was sent, or what was sent failed.
    case stale
    /// The store, after a 304 said that it is still good.
    case revalidated
    /// The exchange of another call that asked for the same.
    case collapsed
    /// A service in this process.
    case inProcess
    /// Made on this side without asking anyone, as the 504 to only-if-cached is.
    case synthesized

    /// Whether a body from a store was used.
    public var isFromStore: Bool {
        switch self {
        case .fresh, .stale, .revalidated: true
        case .network, .collapsed, .inProcess, .synthesized: false
        }
    }
}

/// What is known of the request fields that a response answers.
package enum Presentation: Sendable {
    /// Nothing yet: the response is fresh from a transport, or a hook made it.
    case unknown
    /// These fields went out, or were looked up by.
    case fields(HeaderFields)
    /// Another pipeline answered, and what its hooks presented cannot be seen from outside.
    case hidden
}

/// One attempt of a call, for explanations.
public struct AttemptRecord: Sendable, Hashable {
    /// Its number; the first is 1.
    public let number: Int
    /// When it began and ended.
    public let start: MonotonicInstant
    public let end: MonotonicInstant
    /// The status it got, if a response came.
    public let status: StatusCode?
    /// The code of the error it ended with, if none came.
    public let errorCode: ServiceError.Code?
    /// How far the exchange came that ended with an error; nil where the transport did not say.
    public var progress: TransportProgress?
    /// What the failure proved; nil where there was none, or where no rules judged it.
    public var retryClass: RetryClass?
    /// The wait that followed before the next attempt; nil after the last.
    public var delay: Duration?
    /// How long the server asked to be left alone; nil where it did not.
    public var retryAfter: Duration?
    /// Why no attempt followed; nil where one did, or where none was needed.
    public var stopReason: StopReason?
    /// What was sent beneath for this attempt: hedges, or the attempts of a pipeline that is this one's transport.
    public var beneath: [AttemptRecord] = []
}
