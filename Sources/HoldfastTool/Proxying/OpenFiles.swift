// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Dispatch
    internal import Foundation
    internal import HoldfastCommand

    /// The number of files that the process may open: sockets, pipes and files.
    enum OpenFiles {
        /// The least number with which a proxy starts.
        static let least = 128

        #if canImport(Glibc)
            private static let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            private static let files = RLIMIT_NOFILE
        #endif

        /// Raises the limit of this process to the highest that it may set, as servers do, and opens what must be there.
        ///
        /// - Throws: ``CommandFailure`` if that is too low for a proxy.
        static func prepare() async throws(CommandFailure) {
            // Dispatch opens a descriptor for each kind of timer when it is first used, and ends the process if it cannot.
            await withCheckedContinuation { continuation in
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) {
                    DispatchQueue.global().asyncAfter(wallDeadline: .now() + .milliseconds(1)) { continuation.resume() }
                }
            }
            try? await Task.sleep(for: .milliseconds(1), clock: .continuous)
            try? await Task.sleep(for: .milliseconds(1), clock: .suspending)
            let limit = raiseLimit()
            guard limit >= least else {
                throw CommandFailure(
                    "this process may open only \(limit) files, and a proxy needs at least \(least); "
                        + "raise the limit (ulimit -n, or LimitNOFILE= in a systemd unit)"
                )
            }
        }

        /// Raises the soft limit to the hard one; returns the limit that now applies.
        private static func raiseLimit() -> Int {
            var limit = rlimit()
            guard getrlimit(files, &limit) == 0 else { return .max }
            // Some systems allow no more than this, whatever their hard limit says.
            for wanted in [limit.rlim_max, min(limit.rlim_max, 10_240)] where wanted > limit.rlim_cur {
                var raised = limit
                raised.rlim_cur = wanted
                if setrlimit(files, &raised) == 0 { return Int(clamping: wanted) }
            }
            return Int(clamping: limit.rlim_cur)
        }
    }
#endif
