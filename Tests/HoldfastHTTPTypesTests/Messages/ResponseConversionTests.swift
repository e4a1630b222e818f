// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    import Foundation
    import HTTPTypes
    import Holdfast
    import HoldfastHTTPTypes
    import HoldfastSemantics
    import HoldfastStorage
    import Testing

    @Suite("HTTPResponse and Response")
    struct ResponseConversionTests {
        @Test("Status and lines are converted both ways", arguments: [0, 42, 100, 200, 304, 404, 599, 600, 999])
        func both(_ code: Int) throws {
            let response = Response(
                status: StatusCode(code),
                fields: ["Set-Cookie": "a=1", "Set-Cookie": "b=2", "ETag": "\"x\""],
                body: ResponseBody(ByteChunk(copying: "body".utf8))
            )
            let converted = try HTTPResponse(response)
            #expect(converted.status.code == code)
            #expect(converted.headerFields[values: .setCookie] == ["a=1", "b=2"])
            let back = Response(converted, body: response.body)
            #expect(back.head == response.head)
            #expect(back.body.bytesInMemory == response.body.bytesInMemory)
        }

        @Test(
            "A status that HTTPResponse cannot hold throws an error and does not trap",
            arguments: [-1, 1_000, .max, .min]
        )
        func statuses(_ code: Int) {
            let error = #expect(throws: ServiceError.self) {
                try HTTPResponse(Response(status: StatusCode(code)))
            }
            #expect(error?.code == .protocolError)
        }

        @Test("The reason phrase is left out, and the URL that answered is kept")
        func reason() throws {
            let url = try #require(URL(string: "https://h/a"))
            let response = Response(HTTPResponse(status: .init(code: 200, reasonPhrase: "Fine")), url: url)
            #expect(response.status == 200)
            #expect(response.url == url)
            #expect(try HTTPResponse(response).status.reasonPhrase == "")
        }
    }
#endif
