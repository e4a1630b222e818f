// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastProxy
    import HoldfastSemantics
    import HoldfastStorage

    /// A handler by a closure.
    struct ClosureHandler: ClientHandler {
        let answer: @Sendable (ClientRequest) async -> Response

        init(_ answer: @escaping @Sendable (ClientRequest) async -> Response) {
            self.answer = answer
        }

        func answer(_ request: ClientRequest) async -> Response {
            await answer(request)
        }
    }

    extension Response {
        // Without the field that the library's own way to make a response adds.
        static func text(_ text: String) -> Response { .text(text, status: 200, fields: [:]) }

        static func text(_ text: String, status: StatusCode) -> Response { .text(text, status: status, fields: [:]) }

        static func text(_ text: String, status: StatusCode, fields: HeaderFields) -> Response {
            Response(status: status, fields: fields, body: ResponseBody(ByteChunk(copying: text.utf8)))
        }
    }

    /// A server that ends with the test.
    @discardableResult
    func withServer<Result>(
        configuration: ServerConfiguration = ServerConfiguration(),
        _ answer: @escaping @Sendable (ClientRequest) async -> Response,
        _ test: (HTTPServer) async throws -> Result
    ) async throws -> Result {
        let server = try await HTTPServer.start(
            at: .host("127.0.0.1", port: 0),
            configuration: configuration,
            handler: ClosureHandler(answer)
        )
        do {
            let result = try await test(server)
            await server.close()
            return result
        } catch {
            await server.close()
            throw error
        }
    }
#endif
