// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Goes on with a response body whose connection broke, by Range and If-Range: a transport around another one.
///
/// Who reads the body sees one 200, and bytes that are all of one representation: the rest is asked for only where the
/// response has a strong ETag, and taken only from a 206 that bears the same one and continues it exactly, to the end
/// (`ResumePlan`; RFC 9110 §13.1.5, §14.4). That takes a GET with no Range of its own whose content coding was not undone.
/// Where the rest cannot be had, the body ends with the failure it first met.
///
/// Resumes follow each other after the backoff of the rules, on the call's clock, within the same ``ByteSource/next()``;
/// each is paid for out of the budget that retries share, none is begun while the origin's gate is closed, and each has
/// `RetryRules.attemptTimeout`, or 60 s, up to its head: the call's own deadline ended with the head. Cancelling the
/// reader or the body ends a wait and an exchange under way. Calls that switch retries off by rules of their own
/// (``CallOptions/retryRules``, ``CallOptions/retrierFactory``) or say that they must not be repeated are left alone.
///
/// `RetryRules.resumesBodies` puts one around a pipeline's transport. Safe to use from any number of tasks; costs two
/// allocations for each response that could be resumed.
public struct ResumingTransport: Transport {
    private let transport: any Transport
    private let maxResumes: Int
    private let governor: RetryGovernor?

    /// A transport whose response bodies are resumed.
    ///
    /// - Parameters:
    ///   - transport: sends the request and what resumes its response.
    ///   - maxResumes: the most resumes of one body in all, up to 100; 3 by default, 0 or less resumes nothing.
    ///   - governor: the retrier factory's, for its rules and budgets; nil: the default rules, and no budget.
    public init(_ transport: any Transport, maxResumes: Int = 3, governor: RetryGovernor? = nil) {
        self.transport = transport
        self.maxResumes = maxResumes
        self.governor = governor
    }

    public var enforcesDeadline: Bool { transport.enforcesDeadline }

    public func implicitFields(for request: URLRequest) -> HeaderFields {
        transport.implicitFields(for: request)
    }

    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        transport.implicitFields(for: request, context: context)
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        var response = try await transport.send(request, body: body, context: context)
        guard let source = response.body.source, response.status == .ok, body.isReplayable,
            context.options.allowsResumes
        else { return response }
        let fields = transport.implicitFields(for: request, context: context)
            .merging(HeaderFields(request.allHTTPHeaderFields ?? [:]))
        guard
            let plan = ResumePlan(
                response.head,
                method: context.method(of: request),
                fields: fields,
                contentDecoded: response.contentDecoded,
                maxResumes: maxResumes
            )
        else { return response }
        let resumption = Resumption(
            transport: transport,
            governor: governor,
            request: request,
            body: body,
            asksIdentity: !fields.contains("Accept-Encoding") && !response.fields.contains(.contentEncoding),
            context: context
        )
        response.body = ResponseBody(ResumingBody(source, plan, resumption), length: response.body.length)
        return response
    }
}

extension CallOptions {
    /// Whether what the call says of itself leaves room for resuming its body; where it says nothing, the transport decides.
    fileprivate var allowsResumes: Bool {
        if isIdempotent == false { return false }
        if let retryRules { return retryRules.allowsResumes }
        if let retrierFactory { return retrierFactory.governor?.rules.allowsResumes ?? false }
        return true
    }
}

extension RetryRules {
    /// Whether bodies are to be resumed; with one attempt nothing is sent twice.
    var allowsResumes: Bool { resumesBodies && maxAttempts > 1 }
}
