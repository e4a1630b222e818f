// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    /// Bodies, lists and purges.
    extension SharedScript {
        /// ARGV id, version. Opens a body: returns {body, chunks, inline bytes} or "gone"; a body in chunks is kept for its
        /// reader.
        static let open = SharedScript(
            """
            local h = redis.call('HMGET', K..'e:'..ARGV[1], 'n', 'b', 'c', 'i')
            if h[1] ~= ARGV[2] or dead(ARGV[1]) then return answer('gone') end
            if h[2] ~= '' then
              force()
              redis.call('INCR', K..'r:'..h[2])
              redis.call('EXPIRE', K..'r:'..h[2], 600)
            end
            return answer({h[2], num(h[3]), h[4]})
            """
        )

        /// ARGV body. A reader has finished with it.
        static let close = SharedScript(
            """
            local k = K..'r:'..ARGV[1]
            force()
            if redis.call('EXISTS', k) == 1 and redis.call('DECR', k) > 0 then return answer('closed') end
            redis.call('DEL', k)
            local c = redis.call('GET', K..'o:'..ARGV[1])
            if c then
              chunks(ARGV[1], num(c), function(b) redis.call('UNLINK', b) end)
              redis.call('DEL', K..'o:'..ARGV[1])
            end
            return answer('closed')
            """
        )

        /// ARGV body, number. Returns a chunk, and keeps the following ones for the reader.
        static let read = SharedScript(
            """
            if redis.call('EXPIRE', K..'r:'..ARGV[1], 600) == 1 and redis.call('EXISTS', K..'o:'..ARGV[1]) == 1 then
              redis.call('EXPIRE', K..'o:'..ARGV[1], 600)
              for i = num(ARGV[2]), num(ARGV[2]) + 8 do redis.call('EXPIRE', K..'b:'..ARGV[1]..':'..i, 600) end
            end
            return answer(redis.call('GET', K..'b:'..ARGV[1]..':'..ARGV[2]))
            """
        )

        /// ARGV after, limit. Returns {id, shown …} in the order of ids, and only the id for those that are gone.
        static let list = SharedScript(
            """
            local found = {}
            for _, id in ipairs(ask('ZRANGEBYLEX', K..'ids', ARGV[1], '+', 'LIMIT', 0, tonumber(ARGV[2])) or {}) do
              if dead(id) then found[#found + 1] = {id} else found[#found + 1] = {id, show(id)} end
            end
            return answer(found)
            """
        )

        /// Returns {writer, key, variant, metadata, useless, tags} of all writers, at most a thousand.
        static let writers = SharedScript(
            """
            local found = {}
            for _, w in ipairs(ask('ZREVRANGE', K..'wi', 0, 999) or {}) do
              local h = ask('HMGET', K..'w:'..w, 'k', 'v', 'd', 'u', 't') or {}
              if h[1] then found[#found + 1] = {w, h[1], h[2], h[3], h[4], h[5]} end
            end
            return answer(found)
            """
        )

        /// ARGV writers. Their entries will not appear.
        static let stop = SharedScript(
            """
            for i = 1, #ARGV - 4 do dropwriter(ARGV[i]) end
            return answer('stopped')
            """
        )

        /// ARGV kind ("all", "tag", "prefix" or "none"), word. Makes the selected entries invisible, in one step; for a tag
        /// returns the set that ``sweepTag`` removes.
        ///
        /// A prefix is not marked: only the writers are stopped, and ``sweepPrefix`` removes the entries. If the index is
        /// incomplete, no one could find what a purge selects, so everything is removed.
        static let mark = SharedScript(
            """
            force()
            local set = ''
            if not sound() or not agreed then
              renew()
            else
              add('n', 1)
              redis.call('HSET', G, 'cleared', milliseconds())
              local writers = redis.call('ZRANGE', K..'wi', 0, -1)
              if ARGV[1] == 'all' then redis.call('HSET', G, 'e', fresh()) end
              if ARGV[1] == 'tag' then
                if redis.call('EXISTS', K..'t:'..ARGV[2]) == 1 then
                  set = 'd:'..E..':'..string.format('%.0f', sum('n'))
                  redis.call('RENAME', K..'t:'..ARGV[2], K..set)
                  redis.call('EXPIRE', K..set, 3600)
                end
                for _, w in ipairs(writers) do
                  if redis.call('EXISTS', K..'w:'..w) == 1 then ask('HSET', K..'w:'..w, 'x:'..ARGV[2], 1) end
                end
              end
              if ARGV[1] == 'prefix' then
                for _, w in ipairs(writers) do
                  local k = ask('HGET', K..'w:'..w, 'k')
                  if k and string.sub(k, 1, string.len(ARGV[2])) == ARGV[2] then dropwriter(w) end
                end
              end
            end
            tell('*')
            return answer(set)
            """
        )

        /// ARGV after. Removes what is marked as gone, some hundred at a time; returns {how many, last id}, and no id at the
        /// end.
        static let sweep = SharedScript(
            """
            local ids = ask('ZRANGEBYLEX', K..'ids', ARGV[1], '+', 'LIMIT', 0, 300) or {}
            local count = 0
            for _, id in ipairs(ids) do if dead(id) then count = count + drop(id) end end
            return answer({count, #ids < 300 and '' or ids[#ids]})
            """
        )

        /// ARGV set. Like ``sweep``, for the set of a tag; returns {how many, whether there is more}.
        static let sweepTag = SharedScript(
            """
            local ids = ask('SPOP', K..ARGV[1], 300) or {}
            local count = 0
            for _, id in ipairs(ids) do if dead(id) then count = count + drop(id) end end
            return answer({count, #ids < 300 and 0 or 1})
            """
        )

        /// ARGV prefix, after. Removes keys that begin with a prefix, all variants of a key in one step; like ``sweep``.
        static let sweepPrefix = SharedScript(
            """
            local ids = ask('ZRANGEBYLEX', K..'ids', ARGV[2], '+', 'LIMIT', 0, 200) or {}
            local count = 0
            for _, id in ipairs(ids) do
              local k = ask('HGET', K..'e:'..id, 'k')
              if k and string.sub(k, 1, string.len(ARGV[1])) == ARGV[1] then
                for _, other in ipairs(ask('ZRANGE', K..'k:'..string.sub(id, 1, 32), 0, -1) or {}) do
                  local o = ask('HGET', K..'e:'..other, 'k')
                  if o == k then
                    if dead(other) then drop(other) else count = count + drop(other) end
                  end
                end
              end
            end
            return answer({count, #ids < 200 and '' or ids[#ids]})
            """
        )
    }
#endif
