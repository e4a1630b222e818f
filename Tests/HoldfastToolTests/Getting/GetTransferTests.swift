// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import ArgumentParser
    import Foundation
    import Holdfast
    import HoldfastTesting
    import Testing

    @testable import HoldfastTool

    @Suite("holdfast get: requests and files", .timeLimit(.minutes(20)))
    struct GetTransferTests {
        @Test("Fields, method and content are sent as the command line has them")
        func requests() async throws {
            let bed = try GetBed { _ in LoopbackReply(body: "ok") }
            let file = try bed.folder.file("content", "from a file")
            _ = try await bed.run(["/a", "-H", "X-One: 1", "-H", "accept: text/html", "-H", "User-Agent:"])
            _ = try await bed.run(["/b", "-d", "a=1"])
            _ = try await bed.run(["/c", "-d", "@\(file)", "-X", "PUT", "-H", "Content-Type: text/plain"])
            let sent = bed.server.requests
            #expect(sent.map(\.method) == ["GET", "POST", "PUT"])
            #expect(sent[0].values(of: "X-One") == ["1"] && sent[0].values(of: "Accept") == ["text/html"])
            #expect(sent[0].values(of: "User-Agent").isEmpty)
            #expect(
                sent[1].text == "a=1" && sent[1].values(of: "Content-Type") == ["application/x-www-form-urlencoded"]
            )
            #expect(sent[2].text == "from a file" && sent[2].values(of: "Content-Type") == ["text/plain"])
        }

        @Test("Name and password of a URL become Authorization, and -v does not show them")
        func credentials() async throws {
            let bed = try GetBed { _ in LoopbackReply(body: "ok") }
            let outcome = try await bed.run(["http://me:s%40cret@127.0.0.1:\(bed.server.port)/a", "-v"])
            #expect(
                bed.server.requests.first?.values(of: "Authorization") == [
                    "Basic " + Data("me:s@cret".utf8).base64EncodedString()
                ]
            )
            #expect(outcome.error.contains("Authorization: (not shown)"))
            #expect(!outcome.error.contains("cret") && !outcome.error.contains("Basic"))
        }

        @Test(
            "-C - keeps a truncated transfer, requests the rest, and appends nothing else"
        )
        func resuming() async throws {
            let bed = try GetBed { request in
                switch (request.path, request.values(of: "Range").first) {
                case ("/file", nil): LoopbackReply(framing: .length(10), steps: [.send("01234"), .close])
                case ("/file", "bytes=5-"?):
                    LoopbackReply(206, fields: [("Content-Range", "bytes 5-9/10")], body: "56789")
                case ("/file", _): LoopbackReply(416, fields: [("Content-Range", "bytes */10")], body: "")
                case ("/plain", _): LoopbackReply(body: "anew")
                case ("/moved", _): LoopbackReply(302, fields: [("Location", "/plain")], body: "")
                case ("/other", _): LoopbackReply(206, fields: [("Content-Range", "bytes 0-1/10")], body: "xx")
                default: LoopbackReply(404, body: "no")
                }
            }
            let words = ["-C", "-", "-o", "f", "--retry", "none"]
            #expect(try await bed.run(["/file"] + words).status == GetStatus.broken)
            #expect(bed.saved("f") == "01234")
            #expect(try await bed.run(["/file"] + words).status == 0)
            #expect(bed.saved("f") == "0123456789")
            let whole = try await bed.run(["/file"] + words)
            #expect(whole.status == 0 && whole.error.contains("the file is already complete"))
            #expect(try await bed.run(["/other"] + words).status == GetStatus.network)
            #expect(try await bed.run(["/moved"] + words).status == GetStatus.network)
            #expect(try await bed.run(["/gone"] + words).status == 22)
            #expect(bed.saved("f") == "0123456789")
            #expect(try await bed.run(["/plain"] + words).status == 0)
            #expect(bed.saved("f") == "anew")
            #expect(throws: (any Error).self) { try GetCommand.parse(["http://a/", "-C", "5", "-o", "f"]) }
            #expect(throws: (any Error).self) { try GetCommand.parse(["http://a/", "-C", "-"]) }
        }

        @Test("-i prints head and body, -I only the head, a redirect is followed only with -L")
        func heads() async throws {
            let bed = try GetBed { request in
                request.path == "/moved"
                    ? LoopbackReply(302, fields: [("Location", "/a")], body: "moved")
                    : LoopbackReply(fields: [("X-A", "b")], body: "body")
            }
            let included = try await bed.run(["/a", "-i"])
            #expect(
                included.output.hasPrefix("HTTP 200\n") && included.output.contains("X-A: b\n")
                    && included.output.hasSuffix("\n\nbody")
            )
            let head = try await bed.run(["/a", "-I", "--no-cache"])
            #expect(head.output.contains("X-A: b\n") && !head.output.contains("body"))
            #expect(bed.server.requests.last?.method == "HEAD")
            #expect(try await bed.run(["/moved"]).output == "moved")
            #expect(try await bed.run(["/moved", "-L"]).output == "body")
        }

        @Test("-o and -O save the body under the given name or the URL's, replacing an existing file")
        func saves() async throws {
            let bed = try GetBed { request in LoopbackReply(body: "body of \(request.path)") }
            _ = try bed.downloads.file("mine", "old")
            let outcome = try await bed.run(["/x/a", "/b", "-o", "mine", "-o", "-"])
            #expect(outcome.output == "body of /b" && outcome.error.isEmpty)
            #expect(bed.saved("mine") == "body of /x/a")
            _ = try await bed.run(["/x/data.json?q=1", "-O"])
            #expect(bed.saved("data.json") == "body of /x/data.json")
            #expect(bed.downloads.names == ["data.json", "mine"])
        }

        @Test("A truncated body leaves no file, and an existing one unchanged")
        func broken() async throws {
            let bed = try GetBed { _ in LoopbackReply(framing: .length(1_000), steps: [.send("abc"), .close]) }
            _ = try bed.downloads.file("old", "old")
            let outcome = try await bed.run(["/a", "/a", "-o", "new", "-o", "old", "--retry", "none"])
            #expect(outcome.status == 74)
            #expect(bed.downloads.names == ["old"] && bed.saved("old") == "old")
        }

        @Test("Cancelling during a body ends at once, and no file is left")
        func cancelled() async throws {
            let started = LoopbackGate()
            let bed = try GetBed { _ in
                LoopbackReply(framing: .length(1_000), steps: [.send("abc"), .pause(started), .never])
            }
            let task = Task { try await bed.run(["/a", "-o", "new"]) }
            try await started.reached()
            task.cancel()
            await #expect(throws: CancellationError.self) { _ = try await task.value }
            #expect(bed.downloads.names.isEmpty)
        }

        @Test("If the output cannot be written, it prints one line and exits with 1")
        func unwritable() async throws {
            let bed = try GetBed { _ in LoopbackReply(body: "ok") }
            let outcome = try await bed.run(["/a", "-o", "no/such/folder/file"])
            #expect(outcome.status == 1 && outcome.error.contains("cannot write"))
            try FileManager.default.createDirectory(
                at: bed.downloads.url.appendingPathComponent("folder"),
                withIntermediateDirectories: false
            )
            let folder = try await bed.run(["/a", "-o", "folder"])
            #expect(folder.status == 1 && folder.error.contains("is a directory"))
            #expect(bed.downloads.names == ["folder"])
        }

        @Test(
            "The name for a saved URL never leads out of the folder",
            arguments: [
                ("http://h/a/b.txt", "b.txt"), ("http://h/", "index.html"), ("http://h", "index.html"),
                ("http://h/a/", "index.html"), ("http://h/a/..", "index.html"), ("http://h/b?x=/etc/passwd", "b"),
                ("http://h/..%2F..%2Fetc", "..%2F..%2Fetc"),
            ]
        )
        func names(_ url: String, _ name: String) throws {
            #expect(OutputFile.name(of: try #require(URL(string: url))) == name)
        }

        @Test("The progress line has size and rate")
        func progress() {
            #expect(TransferProgress.text(1_200_000, of: 5_000_000, in: .seconds(2)) == "1.2 MB of 5 MB, 600 kB/s")
            #expect(TransferProgress.text(0, of: nil, in: .zero) == "0 B, 0 B/s")
        }

        @Test("Server text reaches the terminal without control characters")
        func printable() {
            #expect(HeadText.printable("a\u{1B}[31mb\u{9B}c") == "a?[31mb?c")
        }

        @Test("A file that -o replaces keeps its permissions")
        func permissions() async throws {
            let bed = try GetBed { _ in LoopbackReply(body: "new") }
            let path = try bed.downloads.file("mine", "old")
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            #expect(try await bed.run(["/a", "-o", "mine"]).status == 0)
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(bed.saved("mine") == "new")
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        }
    }
#endif
