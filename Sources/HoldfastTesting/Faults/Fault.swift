// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics

/// Something that goes wrong with one exchange.
public struct Fault: Sendable {
    enum Kind: Sendable {
        case failure(ServiceError)
        case silence
        case response(StatusCode, HeaderFields)
        case truncation(bytes: Int)
        case none
    }

    let kind: Kind
    var wait: Duration = .zero

    /// Fails as a broken connection does, after `progress` was made.
    ///
    /// From `.bodySent` on the request reaches the transport, and what it answers is lost: the server may have acted. Before
    /// that nothing is sent.
    public static func fail(
        _ code: ServiceError.Code = .connectionLost,
        progress: TransportProgress,
        connectionReused: Bool = false
    ) -> Fault {
        let message = "Injected: the exchange failed with \(code)."
        return Fault(
            kind: .failure(ServiceError(code, message, progress: progress, connectionReused: connectionReused))
        )
    }

    /// Never answers and sends nothing; ends with `.timeout` at the attempt's deadline, or with cancellation.
    public static let silence = Fault(kind: .silence)

    /// Answers with this status, without asking the transport.
    public static func status(_ status: Int, _ fields: HeaderFields = HeaderFields()) -> Fault {
        Fault(kind: .response(StatusCode(rawValue: status), fields))
    }

    /// Sends the request after a wait on the call's clock.
    public static func delay(_ length: Duration) -> Fault {
        Fault(kind: .none, wait: length)
    }

    /// Breaks the connection after so many bytes of the response's body; at its end where it is shorter.
    public static func truncate(after bytes: Int) -> Fault {
        Fault(kind: .truncation(bytes: max(0, bytes)))
    }

    /// The same fault after a wait on the call's clock, which ends with the attempt's deadline at the latest.
    public func delayed(by length: Duration) -> Fault {
        var fault = self
        fault.wait = length
        return fault
    }
}
