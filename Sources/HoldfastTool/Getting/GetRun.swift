// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastStorage

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// Fetches the URLs of a command line.
    struct GetRun: Sendable {
        /// How long responses that are still being stored, and revalidations in the background, may keep the command from ending.
        private static let patience = Duration.seconds(5)

        let command: GetCommand
        let environment: GetEnvironment

        private var console: Console { environment.console }

        /// Fetches all URLs, one after another, and closes the cache.
        ///
        /// - Returns: the exit status.
        /// - Throws: ``CommandFailure`` for a wrong command line, before anything is sent; `CancellationError`.
        func run() async throws -> Int32 {
            let body = try await GetRequest.body(command.data)
            var requests: [GetRequest] = []
            for url in command.urls {
                let method = command.head ? RequestMethod.head.rawValue : command.method
                requests.append(try GetRequest(url, method: method, headers: command.header, body: body))
            }
            let places = try command.places(of: requests, in: environment.workingDirectory)
            let cache = try await openCache()
            let pipeline = pipeline(cache)
            var status: Int32 = 0
            var end: MonotonicInstant?
            do {
                for (request, place) in zip(requests, places) {
                    end = command.deadline.map { environment.clock.now.advanced(by: $0.duration) }
                    let outcome = try await fetch(request, to: place, pipeline: pipeline)
                    if status == 0 { status = outcome }
                }
            } catch {
                await cache?.close()
                throw error
            }
            let patience = environment.clock.now.advanced(by: GetRun.patience)
            await finish(pipeline, until: end.map { min($0, patience) } ?? patience)
            await cache?.close()
            return status
        }

        /// Waits for responses that the cache is still storing, and for background revalidations.
        private func finish(_ pipeline: Pipeline, until end: MonotonicInstant) async {
            let clock = environment.clock
            await withTaskGroup { group in
                group.addTask { await pipeline.drain() }
                group.addTask { try? await clock.sleep(until: end) }
                await group.next()
                group.cancelAll()
            }
        }

        private func fetch(_ request: GetRequest, to place: URL?, pipeline: Pipeline) async throws -> Int32 {
            do {
                guard let limit = command.deadline?.duration else {
                    return try await exchange(request, to: place, pipeline: pipeline)
                }
                return try await withThrowingTaskGroup(of: Int32.self) { group in
                    let clock = environment.clock
                    let end = clock.now.advanced(by: limit)
                    group.addTask { try await exchange(request, to: place, pipeline: pipeline) }
                    group.addTask {
                        try await clock.sleep(until: end)
                        throw ServiceError(.deadlineExceeded, "The deadline of \(TimeSpan(limit)) has passed.")
                    }
                    defer { group.cancelAll() }
                    return try await group.next() ?? GetStatus.network
                }
            } catch {
                if error is CancellationError || Task.isCancelled { throw CancellationError() }
                if let failure = console.outputFailure() { throw failure }
                let failure = error as? ServiceError
                let text = failure?.message ?? "\(error)"
                let attempts = failure?.attempts.count ?? 0
                let count = attempts > 1 ? " (after \(attempts) attempts)" : ""
                console.error("holdfast: \(request.name): \(CommandFailure(text))\(count)\n")
                return GetStatus.of(error)
            }
        }

        private func exchange(_ request: GetRequest, to place: URL?, pipeline: Pipeline) async throws -> Int32 {
            let start = environment.clock.now
            var sent = request.request
            var part: Int?
            if command.continueAt != nil, let place {
                let size = try? FileManager.default.attributesOfItem(atPath: place.path)[.size] as? NSNumber
                part = size?.intValue ?? 0
                if let part, part > 0 { sent.setValue("bytes=\(part)-", forHTTPHeaderField: "Range") }
            }
            let response = try await pipeline.send(sent, body: request.body, options: callOptions)
            let status = GetStatus.of(response.status)
            if command.verbose { tell(response, start: start) }
            if let part, let place {
                return try await resume(request, with: response, at: part, place: place)
            }
            if command.fail, status != 0 {
                response.body.discard()
                console.error("holdfast: \(request.name): status \(response.status)\n")
                return status
            }
            let head = HeadText.head(response.status, fields: response.fields, prefix: "") + "\n"
            if command.include || command.head { try await write(Data(head.utf8)) }
            if command.head {
                response.body.discard()
            } else {
                try await save(response.body, to: place)
            }
            return status
        }

        /// Appends the rest of a file from the server to the existing part; leaves the file alone if the response is
        /// not that rest.
        private func resume(_ request: GetRequest, with response: Response, at part: Int, place: URL) async throws
            -> Int32
        {
            let range = response.fields["Content-Range"] ?? ""
            var start: Int?
            switch response.status.rawValue {
            case 200: start = 0
            case 206 where range.hasPrefix("bytes \(part)-"): start = part
            case 206:
                throw CommandFailure(
                    "the server sent a different part (\(HeadText.printable(range))); nothing was added",
                    exitStatus: GetStatus.network
                )
            case 416 where range == "bytes */\(part)":
                response.body.discard()
                console.error("holdfast: \(request.name): the file is already complete\n")
                return 0
            default: break
            }
            guard let start else {
                response.body.discard()
                console.error("holdfast: \(request.name): status \(response.status); the file was not changed\n")
                return response.status.rawValue >= 400 ? GetStatus.http : GetStatus.network
            }
            try await save(response.body, to: place, from: start)
            return 0
        }

        /// - Parameter start: the offset at which an existing file is continued in place; nil: a new file, which
        ///   appears when it is complete.
        private func save(_ body: ResponseBody, to place: URL?, from start: Int? = nil) async throws {
            // A progress line within a text on the same terminal would break it up.
            let shows = console.errorIsTerminal && (place != nil || !console.outputIsTerminal)
            let progress = shows ? TransferProgress(console, length: body.length, clock: environment.clock) : nil
            defer { progress?.end() }
            let file: OutputFile? = if let place { try await OutputFile.open(place, continuingAt: start) } else { nil }
            defer { file?.discard() }
            for try await chunk in body {
                if let file {
                    try await file.append(chunk)
                } else {
                    try await write(chunk.withUnsafeBytes { Data($0) })
                }
                progress?.add(chunk.count)
            }
            try Task.checkCancellation()
            try await file?.finish()
        }

        private func write(_ data: Data) async throws {
            let console = console
            try await BlockingWork.run { console.write(data) }
            if let failure = console.outputFailure() { throw failure }
        }

        private func tell(_ response: Response, start: MonotonicInstant) {
            if let decision = response.cacheDecision {
                let age = decision.age.map { ", age \($0) s" } ?? ""
                let left = decision.freshnessLeft.map { $0 >= 0 ? ", fresh for \($0) s" : ", stale for \(-$0) s" } ?? ""
                console.error("* cache: \(decision)\(age)\(left)\n")
            }
            if case .network = response.source {
            } else {
                console.error(HeadText.head(response.status, fields: response.fields, prefix: "< "))
            }
            if let line = response.fields[.cacheStatus] {
                console.error("* Cache-Status: \(HeadText.printable(line))\n")
            }
            let took = HeadText.seconds(start.duration(to: environment.clock.now))
            let count = response.attempts.count
            let sent = count == 0 ? "nothing sent" : FigureText.count(count, of: "attempt")
            console.error("* answered in \(took), \(sent)\n")
        }

        private var callOptions: CallOptions {
            var options = CallOptions()
            options.cache.reload = command.reload
            options.cache.onlyIfCached = command.onlyIfCached
            options.cache.noStore = command.noStore || command.continueAt != nil
            options.cache.maxStale = command.maxStale?.duration
            options.timeout = command.deadline?.duration
            return options
        }

        private func pipeline(_ cache: HTTPCache?) -> Pipeline {
            var configuration = PipelineConfiguration()
            configuration.clock = environment.clock
            configuration.attemptTimeout = command.timeout.duration > .zero ? command.timeout.duration : nil
            configuration.redirects = command.location ? .follow(limit: command.maxRedirects) : .returnToCaller
            if command.verbose {
                let transport = environment.transport
                let log = VerboseLog(console: console) { transport.implicitFields(for: $0) }
                configuration.observers = [log]
                configuration.interceptors = [log]
            }
            let factory: any RetrierFactory =
                switch command.retry {
                case .default: .default
                case .patient: .patient
                case .none: .never
                }
            return Pipeline(
                transport: environment.transport,
                cache: cache,
                retrierFactory: factory,
                configuration: configuration
            )
        }

        /// The disk cache; one in memory if another process has the directory or the disk fails.
        private func openCache() async throws -> HTTPCache? {
            if command.noCache { return nil }
            var options = CacheOptions.private
            options.cacheName = "holdfast"
            if let rules = command.rules { options.rules = try CacheRules(ofOption: rules) }
            let directory = command.cacheDir.map { URL(fileURLWithPath: $0) } ?? environment.cacheDirectory
            do {
                return try await HTTPCache.onDisk(at: directory, capacity: command.cacheSize.bytes, options: options)
            } catch {
                let failure = error as? StoreError
                let text = failure?.message ?? "\(error)"
                console.error("holdfast: continuing without the disk cache: \(CommandFailure(text))\n")
                return HTTPCache.inMemory(options: options)
            }
        }
    }

    /// The exit statuses of `holdfast get`, which tell a script what went wrong.
    enum GetStatus {
        /// The status of the response is 400 or above.
        static let http: Int32 = 22
        /// No response, or none that can be used, for a reason without a status of its own.
        static let network: Int32 = 70
        static let resolve: Int32 = 71
        static let connect: Int32 = 72
        static let tls: Int32 = 73
        static let broken: Int32 = 74
        static let timeout: Int32 = 75
        static let redirects: Int32 = 76
        static let heldBack: Int32 = 77

        /// The status for a response.
        static func of(_ status: StatusCode) -> Int32 { status.rawValue >= 400 ? http : 0 }

        /// The status for an error.
        static func of(_ error: any Error) -> Int32 {
            if let failure = error as? CommandFailure { return failure.exitStatus }
            guard let error = error as? ServiceError else { return network }
            switch error.code {
            case .resolve: return resolve
            case .connect, .offline: return connect
            case .tls, .certificate: return tls
            case .connectionLost, .protocolError: return broken
            case .timeout, .deadlineExceeded: return timeout
            case .tooManyRedirects: return redirects
            case .throttled, .circuitOpen, .tooManyInFlight: return heldBack
            case .badRequest: return 64
            default: return network
            }
        }

        static let help = """
            Exit status: 0 all responses have a status below 400; 22 a response has a status of 400 or above (its body is still \
            printed, unless --fail); 1 something failed on this machine (a file cannot be written); 64 a wrong command line; 130 \
            interrupted. No response, or an incomplete one: 71 the host has no address, 72 no connection, 73 TLS or certificate failed, \
            74 the connection broke or did not use HTTP, 75 --timeout or --deadline passed, 76 too many redirects, 77 not sent because \
            the server asked for it, 70 anything else (with -C: another answer than the rest). All URLs are fetched; the first failure determines the status.
            """
    }
#endif
