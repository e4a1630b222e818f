// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import NIOCore

    extension ProxyHandler: ClientHandler {
        func answer(_ request: ClientRequest) async -> Response {
            var proxied = ProxiedRequest(method: request.method, target: request.target.text)
            if request.version == .http10 { proxied.version = "1.0" }
            proxied.fields = request.fields
            proxied.body = request.body
            // The text of an address costs an allocation, which most answers can be made without.
            if clientAddress != .none || onAnswer != nil { proxied.clientAddress = request.remoteAddress?.ipAddress }
            proxied.sendInterim = { request.sendInterim($0) }
            return await answer(proxied)
        }
    }
#endif
