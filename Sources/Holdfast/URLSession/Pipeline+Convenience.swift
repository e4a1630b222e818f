// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension Pipeline {
    /// Loads a URL and its whole body, like `URLSession.data(for:)`, so you only change the object that you call it on.
    ///
    /// Any status is a success, as with URLSession, and the response is an `HTTPURLResponse`. The whole body is held in memory;
    /// use ``bytes(for:options:)``, ``download(for:options:)`` or ``send(_:body:options:)`` to stream it.
    ///
    /// - Throws: ``ServiceError``, or `CancellationError` promptly after cancellation.
    public func data(
        for request: URLRequest,
        options: CallOptions = CallOptions()
    ) async throws -> (Data, URLResponse) {
        try await data(for: request, body: nil, options: options)
    }

    /// Loads a URL and its whole body; like ``data(for:options:)`` with a plain GET.
    public func data(from url: URL, options: CallOptions = CallOptions()) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), options: options)
    }

    /// Sends `body`, or the request's own content, and collects the response.
    func data(for request: URLRequest, body: RequestBody?, options: CallOptions) async throws -> (Data, URLResponse) {
        try await load(request, body: body, options: options) { try $0.foundationResponse() }
    }

    /// Sends `body`, or the request's own content, and collects the response, until the call's deadline.
    ///
    /// - Parameter makeHead: makes what is returned of the head.
    package func load<Head>(
        _ request: URLRequest,
        body: RequestBody?,
        options: CallOptions,
        makeHead: (Response) throws -> Head
    ) async throws -> (Data, Head) {
        let response = try await send(request, body: body, options: options)
        return try await response.releasingBody(of: request) {
            let head = try makeHead(response)
            let data = try await takingContent(of: response, until: response.deadline, on: configuration.clock) {
                try await response.body.data()
            }
            try response.checkEnd(after: data.count, of: response.body.length, method: request.httpMethod)
            return (data, head)
        }
    }
}

extension Response {
    /// The head in Foundation's form; the only place where the convenience methods make it, in case responses ever contain it.
    func foundationResponse() throws -> URLResponse {
        if let made = makeHTTPURLResponse() { return made }
        throw ServiceError(
            .badRequest,
            "The request has no URL, so no HTTPURLResponse can be made; give it one.",
            response: self
        )
    }

    /// Uses the response; if that fails, the transfer ends and the error names the call and its attempts. Cancellation is always
    /// a `CancellationError`.
    func releasingBody<Wanted>(of request: URLRequest, _ take: () async throws -> Wanted) async throws -> Wanted {
        do {
            return try await take()
        } catch {
            body.discard()
            throw error.isCancellation
                ? CancellationError() : error.telling(of: BodyCall(request: request, attempts: attempts))
        }
    }
}

extension Pipeline {
    /// Sends content from memory and loads the response, like `URLSession.upload(for:from:)`.
    ///
    /// The content replaces that of the request itself. The request's method is sent as it is, so set POST or PUT. A retry
    /// sends the whole content again, if the retry rules allow it.
    ///
    /// - Throws: ``ServiceError``, or `CancellationError` promptly after cancellation.
    public func upload(
        for request: URLRequest,
        from bodyData: Data,
        options: CallOptions = CallOptions()
    ) async throws -> (Data, URLResponse) {
        try await data(for: request, body: .data(bodyData), options: options)
    }

    /// Sends the content of a file and loads the response, like `URLSession.upload(for:fromFile:)`.
    ///
    /// The file is read again for each attempt and must not change during the call. It replaces the content of the request
    /// itself. The request's method is sent as it is, so set POST or PUT.
    ///
    /// - Throws: ``ServiceError``, with `.badRequest` if the file cannot be read and nothing was sent; `CancellationError`
    ///   promptly after cancellation.
    public func upload(
        for request: URLRequest,
        fromFile fileURL: URL,
        options: CallOptions = CallOptions()
    ) async throws -> (Data, URLResponse) {
        do {
            // A file that no attempt could read: no transport begins with it.
            _ = try await UploadFile.open(fileURL)
        } catch {
            throw ServiceError(
                .badRequest,
                "The file to upload could not be read, so nothing was sent. Check its path and permissions.",
                cause: error,
                progress: .notSent
            )
            .naming(CallSubject(request))
        }
        return try await data(for: request, body: .file(fileURL), options: options)
    }
}

extension Pipeline {
    /// Loads a URL into a file, like `URLSession.download(for:)`.
    ///
    /// The body is written as it arrives, in little memory, whatever the status. The file is in the temporary directory and can
    /// be read only by this user. Move or remove it yourself. If the call fails or is cancelled, no file is left.
    ///
    /// - Returns: the file, and an `HTTPURLResponse`.
    /// - Throws: ``ServiceError``, with `.other` if the file cannot be written; `CancellationError` promptly after
    ///   cancellation.
    public func download(
        for request: URLRequest,
        options: CallOptions = CallOptions()
    ) async throws -> (URL, URLResponse) {
        try await download(for: request, options: options, into: FileManager.default.temporaryDirectory)
    }

    /// Loads a URL into a file; like ``download(for:options:)`` with a plain GET.
    public func download(from url: URL, options: CallOptions = CallOptions()) async throws -> (URL, URLResponse) {
        try await download(for: URLRequest(url: url), options: options)
    }

    /// Like ``download(for:options:)``, into a directory that the caller chooses.
    func download(
        for request: URLRequest,
        options: CallOptions = CallOptions(),
        into directory: URL,
        on files: any FileSystem = POSIXFileSystem()
    ) async throws -> (URL, URLResponse) {
        var options = options
        options.isDownload = true
        let response = try await send(request, options: options)
        return try await response.releasingBody(of: request) {
            let head = try response.foundationResponse()
            let file = try await DownloadFile.make(in: directory, on: files)
            do {
                try await takingContent(of: response, until: response.deadline, on: configuration.clock) {
                    for try await chunk in response.body { try await file.append(chunk) }
                }
                try file.checkLength(by: response, method: request.httpMethod)
                // A body in memory does not check whether the call is still wanted.
                try Task.checkCancellation()
            } catch {
                await file.remove()
                throw error
            }
            return (file.url, head)
        }
    }
}

extension Pipeline {
    /// Returns at the response head, with the body as a sequence of bytes, like `URLSession.bytes(for:)` on Apple systems, but
    /// on Linux too.
    ///
    /// The bytes arrive at the pace of their reader, as far as the transport allows. Dropping the sequence and its iterators
    /// ends the transfer. Any status is a success, and the response is an `HTTPURLResponse`.
    ///
    /// - Throws: ``ServiceError``, or `CancellationError` promptly after cancellation; the iteration throws the same.
    public func bytes(
        for request: URLRequest,
        options: CallOptions = CallOptions()
    ) async throws -> (ResponseBytes, URLResponse) {
        let response = try await send(request, options: options)
        return try await response.releasingBody(of: request) {
            (ResponseBytes(response.body), try response.foundationResponse())
        }
    }

    /// Returns at the response head, with the body as a sequence of bytes; like ``bytes(for:options:)`` with a plain GET.
    public func bytes(from url: URL, options: CallOptions = CallOptions()) async throws -> (ResponseBytes, URLResponse)
    {
        try await bytes(for: URLRequest(url: url), options: options)
    }
}
