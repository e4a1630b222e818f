// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    import Foundation
    import Holdfast
    import HoldfastServices
    import HoldfastTesting
    import HoldfastXML
    import Testing
    import XMLCoder

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("XML endpoints", .timeLimit(.minutes(20)))
    struct XMLEndpointTests {
        struct Save: InOutEndpoint, XMLConfiguring {
            typealias Service = XMLBed.Service
            typealias Input = XMLBed.Note
            typealias Output = XMLBed.Note
            static let method = Method.post
            static let inputFormat = InputFormat.XML(rootNode: "note")
            static let outputFormat = OutputFormat.XML
            let path = "notes"
            func configure(_ encoder: XMLEncoder) throws { encoder.outputFormatting = .sortedKeys }
        }

        private func client(_ steps: [ScriptedTransport.Step]) -> (ServiceClient<XMLBed.Service>, ScriptedTransport) {
            let transport = ScriptedTransport(steps)
            return (ServiceClient(XMLBed.Service(), transport: transport), transport)
        }

        @Test("D-T20: an Empty endpoint asks for text/xml and reads its error response as XML")
        func errorResponse() async throws {
            let (client, transport) = client([
                .respond(
                    400,
                    ["Content-Type": "text/xml"],
                    body: "<error><message>no such note</message><code>7</code></error>"
                )
            ])
            let error = await #expect(throws: EndpointError.self) { try await XMLBed.Check().makeRequest(to: client) }
            #expect(error?.errorResponse(as: XMLBed.Failure.self)?.code == 7)
            #expect(error?.reason == "no such note")
            #expect(transport.sent.first?.request.value(forHTTPHeaderField: "Accept") == "text/xml")
        }

        @Test("D-T10: input is XML below its root node, as text/xml, and output is read from XML")
        func inputAndOutput() async throws {
            let note = XMLBed.Note(id: 7, text: "a < b & \"c\" naïve", tags: ["x", "y"])
            let (client, transport) = client([
                .respond(
                    200,
                    body: "<?xml version=\"1.0\"?><n><id>8</id><text>ok</text><tags>a</tags><tags>b</tags></n>"
                )
            ])
            let answer = try await Save().makeRequest(to: client, with: note)
            #expect(answer == XMLBed.Note(id: 8, text: "ok", tags: ["a", "b"]))
            let sent = try #require(transport.sent.first)
            #expect(sent.request.value(forHTTPHeaderField: "Content-Type") == "text/xml; charset=utf-8")
            #expect(sent.request.value(forHTTPHeaderField: "Accept") == "text/xml")
            let text = String(decoding: try #require(sent.body).array, as: UTF8.self)
            #expect(text.hasPrefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"))
            #expect(
                text.contains(
                    "<note><id>7</id><tags>x</tags><tags>y</tags><text>a &lt; b &amp; &quot;c&quot; naïve</text></note>"
                )
            )
            #expect(try XMLBed.decoded(text) == note)
        }

        @Test("Content that is not XML is a decoding error with the response")
        func noXML() async throws {
            let (client, _) = client([.respond(200, body: "{}")])
            let error = await #expect(throws: EndpointError.self) {
                try await Save().makeRequest(to: client, with: XMLBed.Note(id: 1, text: "", tags: []))
            }
            #expect(error?.code == .decoding)
            #expect(error?.response?.status.rawValue == 200)
        }

        enum Piece: Decodable, Equatable {
            case bold(String)
            case text(String)

            enum CodingKeys: String, XMLChoiceCodingKey {
                case bold = "b"
                case text = ""
            }

            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: CodingKeys.self)
                let isBold = container.contains(.bold)
                let text = try container.decode(String.self, forKey: isBold ? .bold : .text)
                self = isBold ? .bold(text) : .text(text)
            }
        }

        @Test("A top-level array has its texts, and so has content with elements among its text")
        func textsWithoutName() throws {
            let names = "<names><n>a</n><n> x &amp; &lt;y&gt; </n><n><![CDATA[<z>]]></n><n>漢\n字</n></names>"
            #expect(try XMLBed.decoded([String].self, from: Data(names.utf8)) == ["a", "x & <y>", "<z>", "漢\n字"])
            let mixed = "<p>first &amp; <b>b</b><![CDATA[last]]></p>"
            let pieces = try XMLBed.decoded([Piece].self, from: Data(mixed.utf8))
            #expect(pieces == [.text("first &"), .bold("b"), .text("last")])
        }

        @Test("Spaces stay if the decoder is set up to keep them")
        func spaces() async throws {
            struct Spacious: OutEndpoint, XMLConfiguring {
                typealias Service = XMLBed.Service
                typealias Output = XMLBed.Note
                static let outputFormat = OutputFormat.XML
                let path = "spacious"
                func configure(_ decoder: XMLDecoder) throws { decoder.trimValueWhitespaces = false }
            }
            let (client, _) = client([
                .respond(200, body: "<n><id>8</id><text> &amp; &amp; </text><tags>a</tags></n>")
            ])
            #expect(try await Spacious().makeRequest(to: client).text == " & & ")
        }

        enum Level: String, Codable, Sendable { case high }

        struct SaveAny<Input: Encodable & Sendable>: InEndpoint {
            typealias Service = XMLBed.Service
            static var method: Method { .post }
            static var inputFormat: InputFormat { .XML(rootNode: "any") }
            let path = "any"
        }

        final class Loop: Encodable, Sendable {
            enum Keys: CodingKey { case me }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Keys.self)
                try container.encode(self, forKey: .me)
            }
        }

        struct Both: Encodable, Sendable {
            func encode(to encoder: any Encoder) throws {
                var list = encoder.unkeyedContainer()
                try list.encode(1)
                _ = encoder.container(keyedBy: Loop.Keys.self)
            }
        }

        @Test("Input that XML cannot represent is an encoding error, not a trap, and nothing is sent")
        func badInput() async throws {
            try await refuses(Level.high)
            try await refuses([String: Int]?.none)
            try await refuses(Loop())
            try await refuses(Both())
            try await refuses(["two words": 1])
            try await refuses(["a><b": 1])
            try await refuses(["a": "\u{1}"])
            try await refuses(["a": Double.nan])
        }

        private func refuses<Input: Encodable & Sendable>(_ input: Input) async throws {
            let (client, transport) = client([])
            let error = await #expect(throws: EndpointError.self) {
                try await SaveAny<Input>().makeRequest(to: client, with: input)
            }
            #expect(error?.code == .encoding)
            #expect(transport.sent.isEmpty)
        }

        @Test("Dictionaries, top-level arrays and values without parts can be encoded")
        func unusualInput() async throws {
            struct Nothing: Codable, Sendable {}
            try await sends(["a": 1], "<any><a>1</a></any>")
            try await sends([1, 2], "<any>")
            try await sends(Nothing(), "<any")
        }

        private func sends<Input: Encodable & Sendable>(_ input: Input, _ part: String) async throws {
            let (client, transport) = client([.respond()])
            try await SaveAny<Input>().makeRequest(to: client, with: input)
            let text = String(decoding: try #require(transport.sent.first?.body).array, as: UTF8.self)
            #expect(text.contains(part), "\(text)")
        }
    }
#endif
