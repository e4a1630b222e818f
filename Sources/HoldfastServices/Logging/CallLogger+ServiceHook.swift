// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension CallLogger: ServiceHook {
    public func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        guard includes(host: request.url?.host, operationName: context.options.operationName) else { return nil }
        var message = message(title(of: context), credentials: context.options.credentialFields)
        message.add(request)
        message.addFields(of: request)
        message.add(context.body, type: request.value(forHTTPHeaderField: "Content-Type"))
        write(message)
        return nil
    }

    public func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws
    {
        guard includes(host: request.url?.host, operationName: context.options.operationName) else { return }
        var message = ending(request, context: context)
        message.add(response)
        message.add(response.body, type: response.fields[.contentType])
        write(message)
    }

    public func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        guard includes(host: request.url?.host, operationName: context.options.operationName) else { return nil }
        var message = ending(request, context: context)
        message.add(error)
        write(message)
        return nil
    }

    public func onCancel(_ request: URLRequest, _ context: CallContext) {
        guard includes(host: request.url?.host, operationName: context.options.operationName) else { return }
        var message = ending(request, context: context)
        message.addCancellation()
        write(message)
    }

    private func title(of context: CallContext) -> String {
        let id = context.callID.description
        return context.options.operationName.map { "\(id) \($0)" } ?? id
    }

    private func ending(_ request: URLRequest, context: CallContext) -> CallMessage {
        var message = message(title(of: context), credentials: context.options.credentialFields)
        message.add(request)
        message.meet(context.body, type: request.value(forHTTPHeaderField: "Content-Type"))
        return message
    }
}
