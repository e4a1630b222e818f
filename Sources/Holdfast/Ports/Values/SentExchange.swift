// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// What was sent for a call, and when: of the last attempt.
public struct SentExchange: Sendable {
    /// The request as it went to the transport, after every `prepare` step.
    public let request: URLRequest
    /// Its fields together with the transport's implicit ones; put together at each reading where the transport adds none.
    public var presentedFields: HeaderFields { presented.fields }
    var presented: PresentedFields { together.map { .fields($0) } ?? .own(request) }
    /// The fields that the retry rules have set to tell the server of this attempt: they say nothing of who asks, nor of what for.
    var announcedFields: [FieldName] { announced ?? [] }
    private let announced: [FieldName]?
    /// Those of the transport and the request's own, where the transport adds any.
    private let together: HeaderFields?
    /// When it was handed to the transport.
    public let requestTime: Timestamp
    /// When the response head was there; nil when none came.
    public internal(set) var responseTime: Timestamp?
    /// Its place among all requests: what this process sends later has a later one, whatever the clock says.
    let order: HybridTimestamp

    init(
        request: URLRequest,
        presented: PresentedFields,
        requestTime: Timestamp,
        announced: [FieldName]? = nil
    ) {
        self.request = request
        self.requestTime = requestTime
        order = RequestOrder.next(at: requestTime)
        self.announced = announced
        together = if case .fields(let fields) = presented { fields } else { nil }
    }
}

/// What a cache asked in place of the caller, and how to tell whether a response answers that.
struct OfferedValidation: Sendable {
    /// The fields that the caller's request had itself, of those that were replaced.
    let own: [FieldName: String]
    let replaced: [FieldName]
    /// Whether it asked for a part, which is not what the caller will be given.
    let asksPart: Bool
    let isAnswered: @Sendable (_ response: Response) -> Bool
    /// Asks with conditions that fit what is stored by now; nil where the request is good as it is.
    let renewed: @Sendable (_ context: inout CallContext) async -> URLRequest?
}
