// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import NIOCore

    /// The end of a pipeline whose bytes a ``ByteChannel`` hands out.
    final class ByteChannelHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let channel: ByteChannel

        init(_ channel: ByteChannel) {
            self.channel = channel
        }

        func handlerAdded(context: ChannelHandlerContext) {
            if context.channel.isActive { context.read() }
        }

        /// A channel that never became active ends here.
        func handlerRemoved(context: ChannelHandlerContext) {
            channel.becomeInactive()
        }

        func channelActive(context: ChannelHandlerContext) {
            context.read()
            context.fireChannelActive()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            channel.receive(unwrapInboundIn(data))
        }

        func channelReadComplete(context: ChannelHandlerContext) {
            // Asked for here, the next read costs no system call.
            if channel.wantsBytes { context.read() }
        }

        func channelWritabilityChanged(context: ChannelHandlerContext) {
            channel.pump()
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if let event = event as? ChannelEvent, event == .inputClosed { channel.endInput() }
            context.fireUserInboundEventTriggered(event)
        }

        func channelInactive(context: ChannelHandlerContext) {
            channel.becomeInactive()
            context.fireChannelInactive()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            channel.fail(error)
            context.close(promise: nil)
        }
    }
#endif
