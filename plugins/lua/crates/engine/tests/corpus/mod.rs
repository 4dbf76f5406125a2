//! A corpus of hostile scripts, and what has to become of each.

/// What has to become of a script.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Expect {
    /// It is not loaded; the error says this.
    NotLoaded(&'static str),
    /// Its call fails with this kind; the error says this.
    Fails(&'static str, &'static str),
    /// It does no harm: its call succeeds.
    Harmless,
    /// No interrupt reaches what it does: a process that runs it has to be killed, unless it ends by itself.
    Uninterruptible,
}

/// One of them.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) source: Vec<u8>,
    pub(crate) expect: Expect,
}

use Expect::{Fails, Harmless, NotLoaded, Uninterruptible};

/// The body of a `pre_hook`.
fn body(name: &'static str, body: &str, expect: Expect) -> Case {
    Case { name, source: format!("function pre_hook(ctx)\n{body}\nend").into_bytes(), expect }
}

/// A whole script.
fn whole(name: &'static str, source: impl Into<Vec<u8>>, expect: Expect) -> Case {
    Case { name, source: source.into(), expect }
}

/// With a harmless hook at its end.
fn before_hook(name: &'static str, source: String, expect: Expect) -> Case {
    whole(name, source + "\nfunction pre_hook(ctx) return ctx end", expect)
}

const DEADLINE: Expect = Fails("deadline", "passed its time limit");
const MEMORY: Expect = Fails("memory", "passed its memory limit");
const ABSENT: Expect = Fails("raised", "attempt to");
const READ_ONLY: Expect = Fails("raised", "attempt to modify a readonly table");

/// All of them.
pub(crate) fn corpus() -> Vec<Case> {
    sections().into_iter().flat_map(|(_, cases)| cases).collect()
}

/// All of them, by what they try.
pub(crate) fn sections() -> [(&'static str, Vec<Case>); 8] {
    [
        ("Loops", loops()),
        ("Memory and depth", memory()),
        ("The compiler, and what is no script", compile_bombs()),
        ("Ways out", escapes()),
        ("Errors", errors()),
        ("What is returned", returns()),
        ("What is asked of the host", host_abuse()),
        ("Long operations without an interrupt", uninterruptible()),
    ]
}

/// Files in the directory of scripts: the script's name, what is there, and what is said of it; nothing if it runs.
pub(crate) const FILES: [(&str, &str, &str); 9] = [
    ("bytes", "bytes that are no UTF-8", "not UTF-8 from byte 11"),
    ("directory", "a directory", "no regular file"),
    ("fifo", "a FIFO that nobody writes to", "no regular file"),
    ("good", "a script", ""),
    ("huge", "a sparse file of 1 GB", "more than 1048576 bytes"),
    ("open", "a script that everybody may write to", "everybody may write to it"),
    ("out", "a link out of the directory", "a link out of the directory"),
    ("socket", "a socket", "no regular file"),
    ("within", "a link to another script of the directory", ""),
];

fn loops() -> Vec<Case> {
    vec![
        body("loop", "while true do end", DEADLINE),
        body("loop_repeat", "repeat until false", DEADLINE),
        body("loop_for", "for _ = 1, math.huge do end", DEADLINE),
        body("loop_in_pcall", "pcall(function() while true do end end) return ctx", DEADLINE),
        body("pcall_in_loop", "while true do pcall(function() while true do end end) end", DEADLINE),
        body("pcall_of_pcall", "pcall(pcall, pcall, function() while true do end end) return ctx", DEADLINE),
        body("pcall_tower", "local function f() pcall(f) f() end f()", DEADLINE),
        body(
            "pcall_swallow_twice",
            "local function f() while true do end end pcall(f) pcall(f) pcall(f)",
            DEADLINE,
        ),
        body("error_in_loop", "while true do pcall(error, {}) end", DEADLINE),
        body(
            "sort_comparator",
            "local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() while true do end end)",
            DEADLINE,
        ),
        body(
            "sort_comparator_pcall",
            "pcall(table.sort, {1, 2, 3}, function() while true do end end)",
            DEADLINE,
        ),
        body("gsub_callback", "(('x'):rep(10)):gsub('x', function() while true do end end)", DEADLINE),
        body("gsub_in_loop", "while true do ('x'):gsub('x', 'y') end", DEADLINE),
        body("pattern", "string.find(('a'):rep(5000), ('.-'):rep(30) .. 'b')", DEADLINE),
        body("pattern_gmatch", "for _ in (('a'):rep(5000)):gmatch(('a*'):rep(20) .. 'b') do end", DEADLINE),
        body(
            "pattern_in_pcall",
            "while true do pcall(string.find, ('a'):rep(5000), ('a-'):rep(30) .. 'b') end",
            DEADLINE,
        ),
        body("pattern_reference", "(('a'):rep(2e5)):find('(.*)%1b')", DEADLINE),
        body("pattern_set", "(('z'):rep(1e5)):find('[' .. ('a'):rep(1e6) .. 'z]+b')", DEADLINE),
        body(
            "plain_find",
            "local s = ('a'):rep(1e6) local n = ('a'):rep(5e5) .. 'b' while true do s:find(n, 1, true) end",
            DEADLINE,
        ),
        body(
            "gsub_callback_pcall",
            "(('x'):rep(10)):gsub('x', function() pcall(function() while true do end end) end)",
            DEADLINE,
        ),
        body("gmatch_for_ever", "while true do for _ in (''):gmatch('') do end end", DEADLINE),
        body("iterator_for_ever", "for _ in function() return 1 end do end", DEADLINE),
        body("next_for_ever", "local t = { 1 } while next(t) do end", DEADLINE),
        body("foreach", "while true do table.foreach({ 1 }, function() end) end", DEADLINE),
        body(
            "mutual_recursion",
            "local a, b function a() return b() end function b() return pcall(a) end while true do a() end",
            DEADLINE,
        ),
        body("string_coercion", "local n = 0 while true do n = ('1' + n) % 7 end", DEADLINE),
        body("log_for_ever", "while true do ctx.log('info', 'x') end", DEADLINE),
        body("log_in_pcall", "while true do pcall(ctx.log, 'info', 'x') end", DEADLINE),
        body(
            "coroutine_resume",
            "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
            DEADLINE,
        ),
        body("coroutine_wrap", "coroutine.wrap(function() while true do end end)()", DEADLINE),
        body(
            "coroutine_around_pcall",
            "local c = coroutine.wrap(function() while true do pcall(function() while true do end end) coroutine.yield() end end) while true do pcall(c) end",
            DEADLINE,
        ),
        body(
            "coroutine_yield_for_ever",
            "local c = coroutine.wrap(function() while true do coroutine.yield() end end) while true do c() end",
            DEADLINE,
        ),
        before_hook("loop_at_load", "while true do end".to_owned(), NotLoaded("passed its time limit")),
        before_hook(
            "loop_in_pcall_at_load",
            "pcall(function() while true do end end)".to_owned(),
            NotLoaded("passed its time limit"),
        ),
    ]
}

fn memory() -> Vec<Case> {
    vec![
        body("string_rep", "return { message = string.rep('x', 1e9) }", Fails("memory", "")),
        body("string_rep_huge", "string.rep('x', 1e15)", Harmless),
        body("string_rep_of_rep", "(('x'):rep(1e6)):rep(1e6)", Fails("raised", "too large")),
        body("table_for_ever", "local t = {} while true do t[#t + 1] = {} end", MEMORY),
        body(
            "table_in_pcall",
            "while true do pcall(function() local t = {} while true do t[#t + 1] = { 1, 2, 3 } end end) end",
            DEADLINE,
        ),
        body("strings_for_ever", "local t = {} while true do t[#t + 1] = 'x' .. #t end", MEMORY),
        body("string_doubling", "local s = 'xxxxxxxx' while true do s = s .. s end", MEMORY),
        body(
            "closures_for_ever",
            "local t = {} while true do t[#t + 1] = function() return t end end",
            MEMORY,
        ),
        body("table_create", "table.create(1e8, 0)", Fails("raised", "table overflow")),
        body("hash_for_ever", "local i = 0 while true do i = i + 1 ctx.metadata['k' .. i] = 'v' end", MEMORY),
        body("global_for_ever", "kept = {} while true do kept[#kept + 1] = 'y' .. #kept end", MEMORY),
        body(
            "coroutines_for_ever",
            "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
            MEMORY,
        ),
        body("gsub_result", "(('x'):rep(1e5)):gsub('x', ('y'):rep(1e5))", MEMORY),
        body(
            "gsub_result_in_pcall",
            "while true do pcall(string.gsub, ('x'):rep(1e5), 'x', ('y'):rep(1e5)) end",
            DEADLINE,
        ),
        body(
            "gsub_callback_growth",
            "('x'):gsub('x', function() local t = {} while true do t[#t + 1] = {} end end)",
            MEMORY,
        ),
        body("gsub_growth", "local s = 'ab' while true do s = s:gsub('.', '%0%0%0%0') end", MEMORY),
        body(
            "format_growth",
            "local s = 'a' while true do s = string.format('%s%s', s, s) end",
            Fails("memory", ""),
        ),
        body("unpack_many", "return unpack({}, 1, 1e7)", Fails("raised", "too many results")),
        body("byte_many", "return string.byte(('x'):rep(1e6), 1, -1)", Fails("raised", "")),
        body(
            "deep_recursion",
            "local function f() return 1 + f() end return f()",
            Fails("raised", "stack overflow"),
        ),
        body("deep_pcall_recursion", "local function f() return pcall(f) end f() return ctx", Harmless),
        body(
            "deep_gsub_recursion",
            "local function f() return (('x'):gsub('x', f)) end f()",
            Fails("raised", "stack overflow"),
        ),
        body("sparse_table", "local t = {} t[2 ^ 53] = 1 t[-1] = 2 return ctx", Harmless),
        before_hook(
            "memory_at_load",
            "local t = {} while true do t[#t + 1] = {} end".to_owned(),
            NotLoaded("passed its memory limit"),
        ),
    ]
}

fn compile_bombs() -> Vec<Case> {
    let many = |part: &str, times: usize| part.repeat(times);
    let locals: String = (0..40_000).map(|index| format!("local a{index}=f()\n")).collect();
    let constants: String = (0..10_000).map(|index| format!("'k{index}',")).collect();
    vec![
        before_hook(
            "deep_parentheses",
            format!("local x = {}1{}", many("(", 50_000), many(")", 50_000)),
            NotLoaded(""),
        ),
        before_hook(
            "deep_tables",
            format!("local x = {}{}", many("{", 50_000), many("}", 50_000)),
            NotLoaded(""),
        ),
        before_hook(
            "deep_functions",
            format!("{}{}", many("local function f() ", 20_000), many(" end", 20_000)),
            NotLoaded(""),
        ),
        before_hook("deep_blocks", format!("{}{}", many("do ", 50_000), many(" end", 50_000)), NotLoaded("")),
        before_hook("deep_unary", format!("local x = {}1", many("- ", 100_000)), NotLoaded("")),
        before_hook("deep_not", format!("local x = {}true", many("not ", 100_000)), NotLoaded("")),
        before_hook("deep_concat", format!("local x = {}'a'", many("'a'..", 100_000)), NotLoaded("")),
        before_hook("deep_power", format!("local x = {}2", many("2^", 100_000)), NotLoaded("")),
        before_hook(
            "deep_index",
            format!("local x = {{}} local y = x{}", many(".a", 100_000)),
            NotLoaded(""),
        ),
        before_hook(
            "deep_calls",
            format!("local x = pcall local y = x{}", many("(x)", 100_000)),
            NotLoaded(""),
        ),
        before_hook(
            "deep_elseif",
            format!("if x then {} end", many(" elseif x then ", 50_000)),
            NotLoaded(""),
        ),
        before_hook(
            "deep_types",
            format!("local x: {}number{} = 1", many("{", 50_000), many("}", 50_000)),
            NotLoaded(""),
        ),
        before_hook(
            "deep_interpolation",
            format!("local x = {}1{}", many("`{", 20_000), many("}`", 20_000)),
            NotLoaded(""),
        ),
        before_hook("many_locals", locals, NotLoaded("Out of local registers")),
        before_hook("many_constants", format!("local t = {{{constants}}}"), Harmless),
        before_hook("long_string", format!("local s = '{}'", many("x", 900_000)), Harmless),
        before_hook("long_name", format!("local {} = 1", many("x", 900_000)), Harmless),
        before_hook(
            "unclosed_string",
            format!("local s = [[{}", many("x", 900_000)),
            NotLoaded("Malformed string"),
        ),
        before_hook("unclosed_comment", format!("--[[{}", many("x", 900_000)), NotLoaded("")),
        before_hook("too_large", many("-- x\n", 250_000), NotLoaded("1048576 are the most")),
        whole("bytecode", b"\x06\x03\x00\x00\x01\x00".to_vec(), NotLoaded("")),
        whole("bytecode_of_lua_5_1", b"\x1bLua\x51\x00".to_vec(), NotLoaded("")),
        whole("not_utf8", b"local s = '\xff\xfe'".to_vec(), NotLoaded("not UTF-8 from byte 11")),
        whole("zero_bytes", vec![0; 1000], NotLoaded("")),
        whole("empty", "", NotLoaded("defines nothing that is called")),
        whole("only_local", "local function pre_hook(ctx) end", NotLoaded("without `local`")),
        whole("no_function", "pre_hook = 5", NotLoaded("`pre_hook` is a ")),
        whole("both_ways_twice", "function hook(c) end function pre_hook(c) end", NotLoaded("keep either")),
        whole("task_without_schedule", "function task(ctx) end", NotLoaded("needs a table beside it")),
        whole(
            "schedule_without_task",
            "schedule = { every = '1h' } function hook(c) end",
            NotLoaded("no function task"),
        ),
        whole(
            "schedule_of_nothing",
            "schedule = {} function task(c) end",
            NotLoaded("either `cron` or `every`"),
        ),
        whole(
            "schedule_of_numbers",
            "schedule = { cron = {} } function task(c) end",
            NotLoaded("schedule.cron is a text"),
        ),
    ]
}

fn escapes() -> Vec<Case> {
    vec![
        body("getfenv", "getfenv(0).x = 1", ABSENT),
        body("setfenv", "setfenv(1, {})", ABSENT),
        body("loadstring", "loadstring('return 1')()", ABSENT),
        body("load", "load('return 1')()", ABSENT),
        body("dofile", "dofile('/etc/passwd')", ABSENT),
        body("require", "require('x')", ABSENT),
        body("io", "io.open('/etc/passwd')", ABSENT),
        body("os_execute", "os.execute('id')", ABSENT),
        body("os_exit", "os.exit(1)", ABSENT),
        body("os_getenv", "return { message = os.getenv('HOME') }", ABSENT),
        body("os_clock", "os.clock()", ABSENT),
        body("debug", "debug.traceback()", ABSENT),
        body("package", "package.loadlib('x', 'y')", ABSENT),
        body("string_dump", "string.dump(pre_hook)", ABSENT),
        body("newproxy", "newproxy(true)", ABSENT),
        body("collectgarbage", "collectgarbage('stop')", ABSENT),
        body("setmetatable", "setmetatable({}, { __index = function() while true do end end })", ABSENT),
        body("getmetatable_of_strings", "getmetatable('').__index = nil", ABSENT),
        body("rawset", "rawset(string, 'rep', nil)", ABSENT),
        body("ffi", "ffi.C.system('id')", ABSENT),
        body("jit", "jit.off()", ABSENT),
        body("print", "print('x')", ABSENT),
        body("poisoned_G", "_G.pcall = nil", ABSENT),
        body("poisoned_string", "string.find = function() return 1 end", READ_ONLY),
        body("poisoned_math", "math.huge = 1", READ_ONLY),
        body("poisoned_os", "os.time = function() return 0 end", READ_ONLY),
        body("poisoned_string_method", "local s = 'x' s.find = 1", ABSENT),
        body("poisoned_globals", "pcall = nil tostring = nil type = nil return ctx", Harmless),
        body("setmetatable_by_name", "local t = setmetatable({}, {}) return ctx", ABSENT),
        body("rawget_by_name", "local t = rawget({}, 'x') return ctx", ABSENT),
        body("typeof_by_name", "local t = typeof(1) return ctx", ABSENT),
        body("vector", "vector.create(1, 2, 3)", ABSENT),
    ]
}

fn errors() -> Vec<Case> {
    vec![
        body("error_table", "error({ code = 1 })", Fails("raised", "")),
        body("error_nil", "error(nil)", Fails("raised", "")),
        body("error_context", "error(ctx)", Fails("raised", "")),
        body("error_function", "error(error)", Fails("raised", "")),
        body("error_huge", "error(('x'):rep(1e5))", Fails("raised", "xxx")),
        body("error_level", "error('far', 1e9)", Fails("raised", "far")),
        body("error_with_escapes", "error('\\27[2J\\7evil')", Fails("raised", "evil")),
        body("error_not_utf8", "error('\\255\\254bytes')", Fails("raised", "bytes")),
        body("assert_table", "assert(false, {})", Fails("raised", "")),
        body("assert_nothing", "assert(nil)", Fails("raised", "assertion failed")),
        body("call_nil", "ctx.nothing()", Fails("raised", ":2:")),
        body("bad_pattern", "('x'):find('[')", Fails("raised", "malformed pattern")),
        body("bad_format", "string.format('%99999d', 1)", Fails("raised", "")),
    ]
}

fn returns() -> Vec<Case> {
    const RETURNED: &str = "returned";
    vec![
        body("returns_number", "return 5", Fails(RETURNED, "pre_hook() returned a ")),
        body("returns_string", "return 'x'", Fails(RETURNED, "pre_hook() returned a string")),
        body("returns_function", "return pre_hook", Fails(RETURNED, "pre_hook() returned a function")),
        body("drop_is_text", "return { drop = 'yes' }", Fails(RETURNED, "`drop` is a string")),
        body(
            "reason_is_table",
            "return { drop = true, reason = {} }",
            Fails(RETURNED, "`reason` is a table"),
        ),
        body("reason_is_long", "return { drop = true, reason = ('x'):rep(1e5) }", Harmless),
        body("message_is_number", "ctx.message = 5", Fails(RETURNED, "`message` is a ")),
        body("message_is_context", "ctx.message = ctx", Fails(RETURNED, "`message` is a table")),
        body("message_not_utf8", "ctx.message = '\\255'", Fails(RETURNED, "`message` is not UTF-8")),
        body("message_too_long", "ctx.message = ('x'):rep(300000)", Fails(RETURNED, "262144 are the most")),
        body("metadata_is_text", "ctx.metadata = 'x'", Fails(RETURNED, "`metadata` is a string")),
        body("metadata_of_tables", "ctx.metadata.x = {}", Fails(RETURNED, "metadata[\"x\"] is a table")),
        body(
            "metadata_is_cyclic",
            "ctx.metadata.x = ctx.metadata",
            Fails(RETURNED, "metadata[\"x\"] is a table"),
        ),
        body("metadata_by_number", "ctx.metadata[1] = 'x'", Fails(RETURNED, "a key of `metadata` is a ")),
        body("metadata_value_long", "ctx.metadata.x = ('x'):rep(2000)", Fails(RETURNED, "1024 are the most")),
        body(
            "metadata_key_long",
            "ctx.metadata[('x'):rep(100)] = 'x'",
            Fails(RETURNED, "more than 64 bytes"),
        ),
        body(
            "metadata_many",
            "for i = 1, 40 do ctx.metadata['k' .. i] = 'x' end",
            Fails(RETURNED, "32 are the most"),
        ),
        body(
            "metadata_very_many",
            "for i = 1, 5000 do ctx.metadata['k' .. i] = 'x' end",
            Fails(RETURNED, "more than 1024 keys"),
        ),
        body(
            "metadata_numbers",
            "ctx.metadata.n = 5 ctx.metadata.b = true ctx.metadata.nan = 0 / 0",
            Harmless,
        ),
        body("context_in_itself", "ctx.ctx = ctx return ctx", Harmless),
        whole(
            "filter_replaces",
            "function filter(ctx) ctx.message = 'x' end",
            Fails(RETURNED, "name the function pre_hook"),
        ),
    ]
}

fn host_abuse() -> Vec<Case> {
    vec![
        body("log_nothing", "ctx.log()", Fails("raised", "the level of ctx.log")),
        body("log_with_colon", "ctx:log('info', 'x')", Fails("raised", "with a dot, not a colon")),
        body("log_level", "ctx.log('fatal', 'x')", Fails("raised", "debug, info, warn or error")),
        body("log_flood", "for i = 1, 20000 do ctx.log('info', ('x'):rep(5000)) end", Harmless),
        body("log_bytes", "ctx.log('info', '\\255\\0\\27[2J')", Harmless),
        body("kv_table", "ctx.kv_set('k', {})", Fails("raised", "is a table")),
        body("kv_nothing", "ctx.kv_set('k')", Fails("raised", "ctx.kv_delete(key) deletes it")),
        body("kv_not_a_number", "ctx.kv_set('k', 0 / 0)", Fails("raised", "no finite number")),
        body("kv_bytes", "ctx.kv_set('k', '\\255')", Fails("raised", "not UTF-8")),
        body("kv_large", "ctx.kv_set('k', ('x'):rep(300000))", Fails("raised", "more than 262144 bytes")),
        body("kv_empty_key", "ctx.kv_get('')", Fails("raised", "1 to 256 bytes")),
        body("kv_long_key", "ctx.kv_get(('k'):rep(300))", Fails("raised", "1 to 256 bytes")),
        body("kv_many", "for i = 1, 2000 do ctx.kv_get('k') end", Fails("raised", "1000 times")),
        body(
            "llm_many",
            "for i = 1, 10 do ctx.llm('x') end local text, why = ctx.llm('x') if text ~= nil or not why:find('3 times') then error(why) end",
            Harmless,
        ),
        body(
            "llm_long",
            "local text, why = ctx.llm(('x'):rep(600000)) if text ~= nil then error('asked') end",
            Harmless,
        ),
        body("llm_nothing", "ctx.llm()", Fails("raised", "the prompt of ctx.llm")),
        body("llm_model_table", "ctx.llm('x', {})", Fails("raised", "the model of ctx.llm")),
        body("functions_replaced", "ctx.log = nil ctx.kv_get = 5 ctx.metadata = nil return ctx", Harmless),
    ]
}

fn uninterruptible() -> Vec<Case> {
    vec![
        body("table_move", "local t = { 1 } while true do table.move(t, 1, 1e8, 2, {}) end", Uninterruptible),
        body(
            "table_concat",
            "local t = {} for i = 1, 1e5 do t[i] = ('x'):rep(10) end while true do pcall(table.concat, t) end",
            Uninterruptible,
        ),
        body(
            "table_sort",
            "local t = {} for i = 1, 3e5 do t[i] = (i * 7919) % 300007 end while true do table.sort(t) end",
            Uninterruptible,
        ),
    ]
}
