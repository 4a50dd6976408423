# Reads the public headers and writes the manual pages of one of them (make/man-pages). Variables: folder, version, header.
# rondo.h is always read first: what its "forms" page says of every operation is part of the pages of both headers.
#
# What it understands: a comment that starts with /** at the start of a line documents what follows: one declaration, all of
# those between /**@{*/ and /**@}*/, a type, or a macro. Tags: @file, @page, @par, @param, @return, @retval, @forms, @ranks, @threads,
# @source, @code and @endcode; paragraphs; lists whose items start with "- ". A text goes on until a blank line or the next tag.

function escape(text) {
    gsub(/\\/, "\\e", text)
    if (text ~ /^[.']/)
        text = "\\&" text
    return text
}

# Names of functions and constants, and what stands between backquotes, in bold.
function mark(text,    out, word, rest) {
    text = escape(text)
    out = ""
    while (match(text, /`[^`]+`|rondo_[a-zA-Z0-9_]+\(\)|RONDO_[A-Z0-9_]*[A-Z0-9]/)) {
        word = substr(text, RSTART, RLENGTH)
        rest = substr(text, RSTART + RLENGTH)
        out = out substr(text, 1, RSTART - 1)
        if (word ~ /^`/)
            out = out "\\fB" literal(substr(word, 2, length(word) - 2)) "\\fR"
        else if (word ~ /\(\)$/)
            out = out "\\fB" substr(word, 1, length(word) - 2) "\\fR" (word ~ /_i?X/ ? "()" : "(3)")
        else
            out = out "\\fB" word "\\fR"
        text = rest
    }
    return out text
}
function literal(text) {
    gsub(/-/, "\\-", text)
    return text
}
function say(line) { print line > page }

# ---- comments ----

# Parses the lines of a comment into: brief, body[1..bodies] with kind[] (text, item, title, raw, gap), and the tags' tables.
function parse(lines, count,    i, line, name, at, in_code) {
    brief = ""; bodies = 0; params = 0; retvals = 0; returned = ""; ranks = ""; threads = ""; source = ""; has_forms = 0
    page_name = ""; at = ""; in_code = 0
    for (i = 1; i <= count; i++) {
        line = lines[i]
        if (in_code || line ~ /^@code/) {
            in_code = line !~ /^@endcode/
            if (line !~ /^@/)
                add("raw", line)
            at = ""
        } else if (line == "") {
            at = ""
            if (bodies > 0)
                add("gap", "")
        } else if (line ~ /^@(file|page) /) {
            page_name = line
            sub(/^@(file|page) +/, "", page_name)
            at = ""
        } else if (line ~ /^@par /) {
            sub(/^@par +/, "", line)
            add("title", line)
            at = ""
        } else if (line ~ /^@forms/) {
            has_forms = 1
            at = ""
        } else if (line ~ /^@(param|retval) /) {
            at = substr(line, 2, 5)
            sub(/^@(param|retval) +/, "", line)
            name = line
            sub(/ .*/, "", name)
            sub(/^[^ ]+ +/, "", line)
            if (at == "param") {
                param_name[++params] = name
                param_text[params] = line
            } else {
                retval_name[++retvals] = name
                retval_text[retvals] = line
            }
        } else if (line ~ /^@(return|ranks|threads|source) /) {
            at = line
            sub(/^@/, "", at)
            sub(/ .*/, "", at)
            sub(/^@[a-z]+ +/, "", line)
            append(at, line)
        } else if (line ~ /^@/) {
            print FILENAME ": unknown tag: " line > "/dev/stderr"
            failed = 1
        } else if (line ~ /^- /) {
            add("item", substr(line, 3))
            at = "body"
        } else {
            sub(/^ +/, "", line)
            if (at != "" && at != "body")
                append(at, line)
            else if (brief == "" && bodies == 0) {
                brief = line
                at = "brief"
            } else if (at == "body")
                body[bodies] = body[bodies] " " line
            else {
                add("text", line)
                at = "body"
            }
        }
    }
}
function add(what, text) {
    body[++bodies] = text
    kind[bodies] = what
}
function append(at, line) {
    if (at == "brief") brief = brief " " line
    else if (at == "param") param_text[params] = param_text[params] " " line
    else if (at == "retva") retval_text[retvals] = retval_text[retvals] " " line
    else if (at == "return") returned = (returned == "" ? "" : returned " ") line
    else if (at == "ranks") ranks = (ranks == "" ? "" : ranks " ") line
    else if (at == "threads") threads = (threads == "" ? "" : threads " ") line
    else if (at == "source") source = (source == "" ? "" : source " ") line
}

function say_body(from, to,    i) {
    for (i = from; i <= to; i++) {
        if (kind[i] == "title") say(".SS " mark(body[i]))
        else if (kind[i] == "item") say_item(body[i])
        else if (kind[i] == "raw") {
            if (i == from || kind[i - 1] != "raw") { say(".PP"); say(".nf") }
            say(escape(body[i]))
            if (i == to || kind[i + 1] != "raw") say(".fi")
        } else if (kind[i] == "text") { say(".PP"); say(mark(body[i])) }
    }
}
# "NAME: text" of an item that names an argument, an error or a function is a tagged paragraph.
function say_item(text,    name) {
    if (match(text, /^[A-Za-z_]+(\(\))?: /)) {
        name = substr(text, 1, RLENGTH - 2)
        say(".TP"); say("\\fB" name "\\fR"); say(mark(substr(text, RLENGTH + 1)))
    } else {
        say(".IP \\(bu 3"); say(mark(text))
    }
}

# Of a page of the header, kept for the pages of functions: what stands under each title.
function keep_forms(    i, title, text) {
    title = ""
    for (i = 1; i <= bodies; i++) {
        if (kind[i] == "title") { title = body[i]; continue }
        if (kind[i] == "gap") continue
        form_title[++form_count] = title
        form_kind[form_count] = kind[i]
        form_text[form_count] = body[i]
    }
}

# ---- declarations ----

function one_line(text) {
    gsub(/[ \t\n]+/, " ", text)
    sub(/^ /, "", text)
    sub(/ $/, "", text)
    return text
}
function function_name(text) {
    match(text, /rondo_[a-z0-9_]+\(/)
    return substr(text, RSTART, RLENGTH - 1)
}
# In lines of at most 78 characters, with the arguments under the first.
function say_declaration(text,    indent, n, parts, i, line) {
    text = one_line(text)
    sub(/^RONDO_API /, "", text)
    indent = index(text, "(")
    n = split(text, parts, /, /)
    for (i = 1; i < n; i++)
        parts[i] = parts[i] ","
    line = parts[1]
    for (i = 2; i <= n; i++)
        if (length(line) + 1 + length(parts[i]) > 78) {
            say(declaration_line(line))
            line = sprintf("%" (indent > 40 ? 8 : indent) "s%s", "", parts[i])
        } else
            line = line " " parts[i]
    say(declaration_line(line))
}
function declaration_line(line) { return "\\fB" escape(line) "\\fR" }

function begin_page(name, section) {
    page = folder "/man" section "/" name "." section
    say(".\\\" Generated by make/man-pages from include/" header ".")
    say(".TH " toupper(name) " " section " \"\" \"Rondo " version "\" \"Rondo\"")
    # Names are not to be broken, and lines not to be filled with blanks; .SH of groff 1.23 takes the latter from a string.
    say(".nh"); say(".ad l"); say(".ds AD l")
    say(".SH NAME")
}
function lower_first(text) {
    sub(/^Rondo: /, "", text)
    if (text ~ /^[A-Z][a-z]/)
        text = tolower(substr(text, 1, 1)) substr(text, 2)
    sub(/\.$/, "", text)
    return text
}

# The functions that a text names, apart from those of the page, for SEE ALSO.
function note_references(text,    word) {
    while (match(text, /rondo_[a-z0-9_]+\(\)/)) {
        word = substr(text, RSTART, RLENGTH - 2)
        text = substr(text, RSTART + RLENGTH)
        if (!(word in on_page) && !(word in noted)) {
            noted[word] = 1
            references[++reference_count] = word
        }
    }
}

function fields_section(type,    i) {
    say(".SH FIELDS OF " type)
    if (type_text[type] != "") say(mark(type_text[type]))
    for (i = 1; i <= field_count; i++)
        if (field_type[i] == type) {
            say(".TP"); say("\\fB" escape(field_declaration[i]) "\\fR")
            say(field_text[i] == "" ? "\\&" : mark(field_text[i]))
        }
}

# One page for all functions of the comment; the others are links to it.
function write_functions(    i, names, name, type, first, used, text, all) {
    split("", on_page); split("", noted); split("", references); reference_count = 0
    all = ""
    for (i = 1; i <= declarations; i++) {
        name = function_name(declaration[i])
        on_page[name] = 1
        names = names (i > 1 ? ", " : "") name
        all = all " " one_line(declaration[i])
    }
    first = function_name(declaration[1])
    listed[++listed_count] = first
    listed_names[listed_count] = names
    listed_brief[listed_count] = lower_first(brief)
    listed_chapter[listed_count] = chapter
    if (FILENAME != "include/" header)
        return
    for (i = 1; i <= params; i++) note_references(param_text[i])
    for (i = 1; i <= bodies; i++) note_references(body[i])
    for (i = 1; has_forms && i <= form_count; i++) note_references(form_text[i])
    note_references(brief " " returned " " ranks " " threads " " source)
    begin_page(first, 3)
    say(names " \\- " mark(lower_first(brief)))
    say(".SH SYNOPSIS"); say(".nf")
    say("\\fB#include <" header ">\\fR")
    for (i = 1; i <= declarations; i++) { say(".PP"); say_declaration(declaration[i]) }
    say(".fi"); say(".PP"); say("Compile and link with the options of \\fBpkg\\-config \\-\\-cflags \\-\\-libs rondo\\fR.")
    say(".SH DESCRIPTION")
    say(mark(brief))
    say_body(1, bodies)
    if (has_forms && declarations > 1) {
        say(".SS The four forms")
        for (i = 1; i <= form_count; i++)
            if (form_title[i] == "") {
                if (form_kind[i] == "item") {
                    text = form_text[i]
                    sub(/rondo_X/, first, text)
                    sub(/rondo_iX/, "rondo_i" substr(first, 7), text)
                    sub(/^rondo_X/, first, text)
                    say_item(text)
                } else { say(".PP"); say(mark(form_text[i])) }
            }
    }
    if (params > 0) {
        say(".SH ARGUMENTS")
        for (i = 1; i <= params; i++) { say(".TP"); say("\\fI" param_name[i] "\\fR"); say(mark(param_text[i])) }
        for (i = 1; has_forms && i <= form_count; i++)
            if (form_title[i] == "Arguments of the forms" && !documented(form_text[i]) && all ~ ("[ *]" item_name(form_text[i]) "[,)]")) {
                say(".TP"); say("\\fI" item_name(form_text[i]) "\\fR"); say(mark(item_rest(form_text[i])))
            }
    }
    say(".SH RETURN VALUE")
    if (returned != "")
        say(mark(returned))
    else
        say("\\fBRONDO_SUCCESS\\fR (0), or one of the errors below. \\fBrondo_last_error\\fR(3) has the message.")
    if (retvals > 0 || has_forms) {
        say(".SH ERRORS")
        for (i = 1; i <= retvals; i++) { say(".TP"); say("\\fB" retval_name[i] "\\fR"); say(mark(retval_text[i])) }
        for (i = 1; has_forms && i <= form_count; i++)
            if (form_title[i] == "Errors of every operation") {
                if (form_kind[i] == "item") { say(".TP"); say("\\fB" item_name(form_text[i]) "\\fR"); say(mark(item_rest(form_text[i]))) }
                else { say(".PP"); say(mark(form_text[i])) }
            }
    }
    say(".SH OTHER RANKS"); say(mark(ranks))
    say(".SH THREADS")
    if (threads != "") say(mark(threads))
    for (i = 1; has_forms && threads == "" && i <= form_count; i++)
        if (form_title[i] == "Threads of every operation") say(mark(form_text[i]))
    for (i = 1; i <= type_count; i++)
        if (is_struct[type_name[i]] && all ~ ("[ (]" type_name[i] " [*]")) fields_section(type_name[i])
    say(".SH STANDARDS"); say(mark(source))
    say(".SH SEE ALSO")
    for (i = 1; i <= reference_count; i++) say("\\fB" references[i] "\\fR(3),")
    say("\\fB" header "\\fR(7),"); say("\\fBrondo\\fR(1)")
    close(page)
    for (i = 2; i <= declarations; i++) {
        page = folder "/man3/" function_name(declaration[i]) ".3"
        say(".so man3/" first ".3")
        close(page)
    }
}
function item_name(text) { sub(/:.*/, "", text); return text }
function item_rest(text) { sub(/^[^:]*: */, "", text); return text }
function documented(text,    i) {
    for (i = 1; i <= params; i++)
        if (param_name[i] == item_name(text)) return 1
    return 0
}

# ---- types and macros ----

# Inside the braces of a typedef: "declaration; /**< text */", or a constant.
function read_type(text, about,    inside, name, part, end, enumeration, more) {
    name = text
    sub(/ *;[^;]*$/, "", name)
    sub(/^.*[} *]/, "", name)
    enumeration = text ~ /^typedef enum/
    type_name[++type_count] = name
    type_text[name] = about
    type_file[name] = FILENAME
    if (index(text, "{") == 0) { # an opaque handle
        if (match(text, /\/\*\*< .*\*\//)) type_text[name] = substr(text, RSTART + 5, RLENGTH - 8)
        return
    }
    is_struct[name] = !enumeration
    inside = substr(text, index(text, "{") + 1)
    while (1) {
        sub(/^[ \n]+/, "", inside)
        if (inside == "" || inside ~ /^}/) break
        more = ""
        if (inside ~ /^\/\*/) { # a comment before the field
            end = index(inside, "*/")
            more = substr(inside, 1, end - 1)
            inside = substr(inside, end + 2)
            sub(/^\/\*\*? */, "", more)
            gsub(/\n *\*/, " ", more)
            sub(/^[ \n]+/, "", inside)
        }
        if (enumeration ? !match(inside, /[,}]|\/\*/) : !match(inside, /;/)) break
        part = substr(inside, 1, RSTART - 1)
        if (substr(inside, RSTART, 1) == "," || substr(inside, RSTART, 1) == ";")
            inside = substr(inside, RSTART + 1)
        else
            inside = substr(inside, RSTART)
        sub(/^[ ]+/, "", inside)
        if (inside ~ /^\/\*\*</) {
            end = index(inside, "*/")
            more = more substr(inside, 6, end - 6)
            inside = substr(inside, end + 2)
        }
        field_type[++field_count] = name
        field_declaration[field_count] = one_line(part)
        field_text[field_count] = one_line(more)
    }
}

{ sub(/\r$/, "") }

# The chapters: /* ---- name ---- */
/^\/\* ---- / {
    chapter = $0
    sub(/^\/\* ---- */, "", chapter)
    sub(/ *-+ *\*\/ *$/, "", chapter)
    next
}
/^\/\*\*@\{\*\// { grouped = 1; next }
/^\/\*\*@\}\*\// { grouped = 0; if (declarations > 0) write_functions(); declarations = 0; next }

# A comment at the start of a line.
/^\/\*\*/ {
    count = 0
    text = $0
    sub(/^\/\*\* ?/, "", text)
    while (text !~ /\*\//) {
        if (!(count == 0 && text == "")) lines[++count] = text
        if ((getline text) <= 0) break
        sub(/^ \*( |$)/, "", text)
        if (text == "/") text = "*/"
    }
    sub(/ *\*\/.*$/, "", text)
    if (text != "") lines[++count] = text
    parse(lines, count)
    if (page_name ~ /^forms /) keep_forms()
    if (page_name ~ /\.h$/ && page_name == header) {
        file_brief = brief
        file_bodies = bodies
        for (i = 1; i <= bodies; i++) { file_body[i] = body[i]; file_kind[i] = kind[i] }
    }
    next
}
/^RONDO_API / {
    text = $0
    while (text !~ /;/) {
        if ((getline more_text) <= 0) break
        text = text " " more_text
    }
    declaration[++declarations] = text
    if (!grouped) { write_functions(); declarations = 0 }
    next
}
/^typedef / {
    text = $0
    if (text ~ /\{/)
        while (text !~ /\n?\}[^\n]*;/) {
            if ((getline more_text) <= 0) break
            text = text "\n" more_text
        }
    about = brief
    for (i = 1; i <= bodies; i++) about = about " " body[i]
    read_type(text, text ~ /\{/ ? about : "")
    brief = ""; bodies = 0
    next
}
/^#define RONDO_[A-Z_]+/ && brief != "" {
    macro = $2
    sub(/\(.*/, "", macro)
    macro_name[++macro_count] = macro
    macro_text[macro_count] = brief
    macro_file[macro_count] = FILENAME
    brief = ""
}

END {
    if (failed) exit 1
    begin_page(header, 7)
    say(header " \\- " mark(lower_first(file_brief)))
    say(".SH SYNOPSIS"); say("\\fB#include <" header ">\\fR")
    say(".PP"); say("\\fBcc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs rondo)\\fR")
    say(".SH DESCRIPTION"); say(mark(file_brief))
    for (i = 1; i <= file_bodies; i++) { body[i] = file_body[i]; kind[i] = file_kind[i] }
    say_body(1, file_bodies)
    say(".SH FUNCTIONS")
    last = ""
    for (i = 1; i <= listed_count; i++) {
        if (header == "rondo_program.h" && listed_names[i] !~ /rondo_(i?program|chunk)/) continue
        if (listed_chapter[i] != last) { say(".SS " toupper(substr(listed_chapter[i], 1, 1)) substr(listed_chapter[i], 2)); last = listed_chapter[i] }
        say(".TP"); say("\\fB" listed[i] "\\fR(3)")
        say(mark(listed_brief[i]) (listed_names[i] ~ /,/ ? "; also \\fB" rest_of(listed_names[i]) "\\fR" : ""))
    }
    if (header == "rondo.h") {
        say(".SH FORMS OF EACH OPERATION")
        for (i = 1; i <= form_count; i++) {
            if (i > 1 && form_title[i] != form_title[i - 1]) say(".SS " form_title[i])
            if (form_kind[i] == "item") say_item(form_text[i]); else { say(".PP"); say(mark(form_text[i])) }
        }
    }
    say(".SH TYPES AND CONSTANTS")
    for (i = 1; i <= type_count; i++) {
        if (type_file[type_name[i]] != "include/" header) continue
        say(".SS " type_name[i])
        say(type_text[type_name[i]] == "" ? "\\&" : mark(type_text[type_name[i]]))
        for (k = 1; k <= field_count; k++)
            if (field_type[k] == type_name[i]) {
                say(".TP"); say("\\fB" escape(field_declaration[k]) "\\fR")
                say(field_text[k] == "" ? "\\&" : mark(field_text[k]))
            }
    }
    say(".SS Macros")
    for (i = 1; i <= macro_count; i++)
        if (macro_file[i] == "include/" header) { say(".TP"); say("\\fB" macro_name[i] "\\fR"); say(mark(macro_text[i])) }
    say(".SH SEE ALSO")
    if (header == "rondo.h") say("\\fBrondo_program.h\\fR(7),"); else say("\\fBrondo.h\\fR(7),")
    say("\\fBrondo\\-environment\\fR(7),"); say("\\fBrondo\\fR(1)")
    close(page)
}
function rest_of(names) { sub(/^[^,]*, */, "", names); return names }
