// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import NIOCore
    internal import NIOHTTP1

    extension HTTPClient.Configuration {
        /// Makes HTTP/1.1 connections fail if a server answers with a status below 100: the client takes that for an interim
        /// response that nothing follows, and stops the process (seen with 1.37).
        mutating func refuseStatusesBelow100() {
            let further = http1_1ConnectionDebugInitializer
            http1_1ConnectionDebugInitializer = { channel in
                channel.eventLoop.submit {
                    let pipeline = channel.pipeline.syncOperations
                    let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                    try pipeline.addHandler(StatusGuard(), position: .after(decoder))
                }.flatMap { further?(channel) ?? channel.eventLoop.makeSucceededVoidFuture() }
            }
        }
    }

    /// Lets no response with a status below 100 through.
    private final class StatusGuard: ChannelInboundHandler {
        typealias InboundIn = HTTPClientResponsePart
        typealias InboundOut = HTTPClientResponsePart

        private var hasFailed = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if case .head(let head) = unwrapInboundIn(data), head.status.code < 100, !hasFailed {
                hasFailed = true
                context.fireErrorCaught(HTTPParserError.invalidStatus)
                context.close(promise: nil)
            }
            if !hasFailed { context.fireChannelRead(data) }
        }
    }
#endif
