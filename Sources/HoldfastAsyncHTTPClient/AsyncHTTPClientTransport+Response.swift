// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import NIOHTTP1

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    extension AsyncHTTPClientTransport {
        /// The client's response as a pipeline's response.
        func response(
            _ answer: HTTPClientResponse,
            to request: URLRequest,
            upload: Upload,
            trace: @escaping @Sendable () -> ExchangeTrace,
            context: CallContext
        ) -> Response {
            var fields = HeaderFields()
            for (name, value) in answer.headers { fields.append(rawName: name, value: value) }
            let head = ResponseHead(status: StatusCode(rawValue: Int(answer.status.code)), fields: fields)
            let coding = traits.coding(of: fields)
            var response = Response(
                status: head.status,
                fields: fields,
                body: body(of: answer, head: head, to: request, coding: coding, upload: upload, trace: trace),
                url: answer.url ?? request.url,
                contentDecoded: coding == .undone
            )
            if coding == .uncertain { response.presentation = .hidden }
            if answer.history.count > 1 {
                response.presentation = .hidden
                context.emit(AsyncHTTPClientTransport.clientFollowedRedirect) { event in
                    event.attempt = context.attempt
                    event.status = head.status
                    event.detail =
                        "The HTTPClient followed \(answer.history.count - 1) redirects by itself, so the "
                        + "response is not stored; configure it with redirects `.disallow`."
                }
            }
            return response
        }

        private func body(
            of answer: HTTPClientResponse,
            head: ResponseHead,
            to request: URLRequest,
            coding: ClientTraits.Coding,
            upload: Upload,
            trace: @escaping @Sendable () -> ExchangeTrace
        ) -> ResponseBody {
            let isFramed = !head.fields.contains("Transfer-Encoding")
            let length = isFramed && coding == .kept ? head.contentLength : nil
            let isFinal = head.status.rawValue >= 300
            let source = PulledBytes(
                answer.body,
                failure: { error, delivered in
                    var trace = trace()
                    trace.progress = delivered > 0 ? .bytesReceived : .headReceived
                    trace.wasNeverPlaced = false
                    var failure = ClientFailure.serviceError(for: error, trace)
                    if failure.message == FailureMeaning.connectionLost.message {
                        failure.message = FailureMeaning.brokenBody(received: delivered, of: length).message
                    }
                    return failure
                },
                onEnd: { [transport = self] isWhole in
                    // Releasing the transport ends its client, and this body with it.
                    withExtendedLifetime(transport) {}
                    // After such a response the client neither sends nor requests more content.
                    if !isWhole || isFinal { upload.cancel() }
                }
            )
            let isEmpty =
                request.httpMethod == "HEAD" || head.status == 204 || head.status == 304 || isFramed && length == 0
            guard isEmpty else { return ResponseBody(source, length: length) }
            // The end must be read from the client, or it gives up the connection.
            Task { _ = try? await source.next() }
            return ResponseBody()
        }
    }
#endif
