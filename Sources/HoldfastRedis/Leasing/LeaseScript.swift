// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import HoldfastStorage

    /// The scripts that change leases, each in one step for all processes.
    ///
    /// A lease is a string with the holder's token that expires. Next to it, the outcome of the last lease is kept for some
    /// seconds, as "token outcome". Both are in the slot of their store. To delete or prolong a lease one must show its token,
    /// so a holder whose lease has expired cannot harm another one.
    enum LeaseScript {
        /// KEYS lease, end; ARGV token, milliseconds. Returns "granted outcome" ("-" if none is known) or "held token".
        static let take = RedisScript(
            """
            local holder = redis.call('GET', KEYS[1])
            if holder then return 'held ' .. holder end
            redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
            local last = redis.call('GET', KEYS[2])
            return 'granted ' .. (last and string.match(last, '%S+$') or '-')
            """
        )

        /// KEYS lease; ARGV token, milliseconds. Returns "kept" or "lost".
        static let renew = RedisScript(
            """
            if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
            redis.call('PEXPIRE', KEYS[1], ARGV[2])
            return 'kept'
            """
        )

        /// KEYS lease, end; ARGV token, outcome, milliseconds of memory, channel. Returns "ended" or "lost".
        static let end = RedisScript(
            """
            if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
            local word = ARGV[1] .. ' ' .. ARGV[2]
            redis.call('DEL', KEYS[1])
            redis.call('SET', KEYS[2], word, 'PX', ARGV[3])
            redis.call('PUBLISH', ARGV[4], word)
            return 'ended'
            """
        )

        /// KEYS lease, end; ARGV token. Returns "out milliseconds", "ended outcome", or "gone" if nothing is known about it any
        /// more.
        static let look = RedisScript(
            """
            if redis.call('GET', KEYS[1]) == ARGV[1] then return 'out ' .. redis.call('PTTL', KEYS[1]) end
            local last = redis.call('GET', KEYS[2])
            if last and string.sub(last, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then
                return 'ended ' .. string.sub(last, #ARGV[1] + 2)
            end
            return 'gone'
            """
        )
    }

    /// The keys of a lease.
    struct LeasePlace: Sendable {
        let lease: String
        let end: String

        /// - Parameters:
        ///   - prefix: the beginning of all keys of the store, its hash tag included.
        ///   - digest: the digest of the primary key, in hexadecimal.
        init(prefix: String, digest: String, variant: StoreKey) {
            let name = "\(prefix)fill:\(digest):\(variant.bytes.map { LeasePlace.hex($0) }.joined())"
            lease = name
            end = name + ":end"
        }

        static func hex(_ byte: UInt8) -> String {
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }
    }
#endif
