/* Advertised schemas (proto/view_schema*.c): tables, generated schemas, real tools' schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <cmocka.h>
#include <jansson.h>

#include "mcp_args.h"
#include "mcp_schema.h"
#include "view_schema.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static apr_pool_t *pool;

static int set_up(void **state)
{
    (void)state;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    return 0;
}

/* JSON with ' for " to keep the tables readable. NULL for NULL. */
static json_t *parse(const char *text)
{
    char *copy = text != NULL ? apr_pstrdup(pool, text) : NULL;
    json_t *value;

    if (copy == NULL) {
        return NULL;
    }
    for (char *at = copy; *at != '\0'; ++at) {
        *at = *at == '\'' ? '"' : *at;
    }
    value = json_loads(copy, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    if (value == NULL) {
        print_error("bad test data: %s\n", copy);
        fail();
    }
    return value;
}

static void say(const char *what, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY);

    print_error("%s: %s\n", what, text);
    free(text);
}

static mcp_schema_t *compiled(const json_t *schema)
{
    mcp_schema_error_t err = {{0}, {0}, {0}};
    mcp_schema_t *ret = NULL;

    if (mcp_schema_compile(schema, pool, &ret, &err) != MCP_OK) {
        print_error("%s %s %s\n", err.path, err.rule, err.message);
        say("does not compile", schema);
        return NULL;
    }
    return ret;
}

static int is_valid(const mcp_schema_t *schema, const json_t *instance)
{
    return mcp_schema_validate(schema, instance, NULL) == MCP_OK;
}

/* --- stripping: the table ------------------------------------------------------------- */

typedef struct strip_case {
    const char *name;
    const char *schema, *frozen, *defaults;
    const char *want; /* NULL: refused */
} strip_case_t;

static const strip_case_t strips[] = {
    {"nothing is frozen", "{'type':'object','properties':{'a':{}}}", NULL, NULL,
     "{'type':'object','properties':{'a':{}}}"},
    {"a name that the schema doesn't have",
     "{'$defs':{'X':{}},'properties':{'a':{'$ref':'#/$defs/X'}}}", "{'b':1}", NULL,
     "{'$defs':{'X':{}},'properties':{'a':{'$ref':'#/$defs/X'}}}"},
    {"a property and its requirement",
     "{'type':'object','properties':{'a':{'type':'string'},'b':{'type':'string'}},"
     "'required':['a','b'],'additionalProperties':false}",
     "{'a':'x'}", NULL,
     "{'type':'object','properties':{'b':{'type':'string'}},'required':['b'],"
     "'additionalProperties':false}"},
    {"the last requirement", "{'type':'object','properties':{'a':{}},'required':['a']}", "{'a':1}",
     NULL, "{'type':'object','properties':{}}"},
    {"an empty list stays", "{'type':'object','properties':{'a':{},'b':{}},'required':[]}",
     "{'a':1}", NULL, "{'type':'object','properties':{'b':{}},'required':[]}"},
    {"a frozen name is not a pointer", "{'properties':{'a/b':{},'a':{'properties':{'b':{}}}}}",
     "{'a/b':1}", NULL, "{'properties':{'a':{'properties':{'b':{}}}}}"},
    {"escapes of a pointer", "{'properties':{'a/b':{},'m~n':{},'c':{}}}", "{'/a~1b':1,'/m~0n':2}",
     NULL, "{'properties':{'c':{}}}"},
    {"the empty name", "{'properties':{'':{},'c':{}}}", "{'/':1}", NULL, "{'properties':{'c':{}}}"},

    /* nested */
    {"two levels down",
     "{'properties':{'a':{'type':'object','properties':{'b':{},'c':{}},'required':['b','c']}},"
     "'required':['a']}",
     "{'/a/b':1}", NULL,
     "{'properties':{'a':{'type':'object','properties':{'c':{}},'required':['c']}},"
     "'required':['a']}"},
    {"an object whose required members are all frozen is not required",
     "{'properties':{'a':{'type':'object','properties':{'b':{},'c':{}},'required':['b']},"
     "'d':{}},'required':['d','a']}",
     "{'/a/b':1}", NULL,
     "{'properties':{'a':{'type':'object','properties':{'c':{}}},'d':{}},'required':['d']}"},
    {"an object that the merge makes is required if it demands more",
     "{'properties':{'a':{'type':'object','properties':{'b':{},'c':{}},'required':['b','c']}}}",
     "{'/a/b':1}", NULL,
     "{'properties':{'a':{'type':'object','properties':{'c':{}},'required':['c']}},"
     "'required':['a']}"},
    {"three levels down, requirements fall one by one",
     "{'properties':{'a':{'type':'object','properties':{'b':{'type':'object','properties':"
     "{'c':{}},'required':['c']}},'required':['b']}},'required':['a']}",
     "{'/a/b/c':1}", NULL,
     "{'properties':{'a':{'type':'object','properties':{'b':{'type':'object','properties':{}}}}}}"},
    {"only the middle falls",
     "{'properties':{'a':{'type':'object','properties':{'b':{'type':'object','properties':"
     "{'c':{}},'required':['c']},'d':{}},'required':['b','d']}},'required':['a']}",
     "{'/a/b/c':1}", NULL,
     "{'properties':{'a':{'type':'object','properties':{'b':{'type':'object','properties':{}},"
     "'d':{}},'required':['d']}},'required':['a']}"},
    {"what may be null may not once something in it is frozen",
     "{'properties':{'a':{'type':['object','null'],'properties':{'b':{},'c':{}}}}}", "{'/a/b':1}",
     NULL, "{'properties':{'a':{'type':'object','properties':{'c':{}}}}}"},
    {"what has no type gets one", "{'properties':{'a':{'properties':{'b':{},'c':{}}}}}",
     "{'/a/b':1}", NULL, "{'properties':{'a':{'properties':{'c':{}},'type':'object'}}}"},
    {"a whole object and a place in it", "{'properties':{'a':{'properties':{'b':{}}},'c':{}}}",
     "{'a':{'b':1},'/a/b':2}", NULL, "{'properties':{'c':{}}}"},
    {"the same name elsewhere stays",
     "{'properties':{'b':{},'a':{'type':'object','properties':{'b':{}}},'c':{'type':'object',"
     "'properties':{'b':{}},'required':['b']}}}",
     "{'/a/b':1}", NULL,
     "{'properties':{'b':{},'a':{'type':'object','properties':{}},'c':{'type':'object',"
     "'properties':{'b':{}},'required':['b']}}}"},
    {"boolean schemas", "{'properties':{'a':true,'b':false,'c':{}}}", "{'/a/x':1,'/b/y':1,'c':1}",
     NULL, "{'properties':{'a':true,'b':false}}"},
    {"a map's member gets a property of its own",
     "{'type':'object','additionalProperties':{'type':'object','properties':{'k':{},'v':{}},"
     "'required':['k','v']}}",
     "{'/a/k':1}", NULL,
     "{'type':'object','additionalProperties':{'type':'object','properties':{'k':{},'v':{}},"
     "'required':['k','v']},'properties':{'a':{'type':'object','properties':{'v':{}},"
     "'required':['v']}},'required':['a']}"},
    {"patterns are left alone",
     "{'patternProperties':{'^a':{'properties':{'k':{}}}},'additionalProperties':{'properties':"
     "{'k':{}}},'propertyNames':{'maxLength':9}}",
     "{'/a/k':1}", NULL,
     "{'patternProperties':{'^a':{'properties':{'k':{}}}},'additionalProperties':{'properties':"
     "{'k':{}}},'propertyNames':{'maxLength':9}}"},
    {"names of members: a list gets shorter",
     "{'properties':{'a':{},'b':{}},'propertyNames':{'enum':['a','b'],'maxLength':3}}", "{'a':1}",
     NULL, "{'properties':{'b':{}},'propertyNames':{'enum':['b'],'maxLength':3}}"},
    {"names of members: a list that is empty then",
     "{'properties':{'a':{}},'propertyNames':{'enum':['a'],'maxLength':3}}", "{'a':1}", NULL,
     "{'properties':{},'propertyNames':{'maxLength':3}}"},
    {"names of members: the only one", "{'propertyNames':{'const':'a'},'minProperties':0}",
     "{'a':1}", NULL, "{}"},
    {"names of members: in other words",
     "{'propertyNames':{'anyOf':[{'enum':['a','b']},{'pattern':'^x'}]}}", "{'a':1}", NULL, "{}"},
    {"names of members: behind a reference",
     "{'propertyNames':{'$ref':'#/$defs/N'},'$defs':{'N':{'enum':['a','b']}}}", "{'a':1}", NULL,
     "{}"},
    {"names of members: endless references",
     "{'propertyNames':{'$ref':'#/$defs/N'},'$defs':{'N':{'$ref':'#/$defs/N'}}}", "{'a':1}", NULL,
     "{}"},
    {"names of members: nested, and of others",
     "{'properties':{'o':{'propertyNames':{'enum':['a','o']}}},'propertyNames':{'enum':['a','o']}}",
     "{'/o/a':1}", NULL,
     "{'properties':{'o':{'type':'object','propertyNames':{'enum':['o']}}},'propertyNames':{'enum':"
     "['a','o']}}"},
    {"a negated list of names is gone", "{'not':{'propertyNames':{'enum':['a','b']}}}", "{'a':1}",
     NULL, "{}"},
    {"patterns that list names",
     "{'patternProperties':{'^a$':{'enum':['mine','yours']},'^(a|b)$':{},'^(?:a|c|d)$':{},"
     "'^(a)$':{},'^a':{},'^[a]$':{},'^b$':{},'a$':{},'^(a|(b))$':{}}}",
     "{'a':1}", NULL,
     "{'patternProperties':{'^(b)$':{},'^(?:c|d)$':{},'^a':{},'^[a]$':{},'^b$':{},'a$':{},"
     "'^(a|(b))$':{}}}"},
    {"escapes in patterns", "{'patternProperties':{'^a\\\\.b$':{},'^a.b$':{},'^\\\\w$':{}}}",
     "{'a.b':1,'w':1}", NULL, "{'patternProperties':{'^a.b$':{},'^\\\\w$':{}}}"},
    {"the last pattern", "{'patternProperties':{'^a$':{}},'additionalProperties':false}",
     "{'a':1}", NULL, "{'additionalProperties':false}"},

    /* applicators */
    {"allOf, anyOf",
     "{'properties':{'a':{},'b':{}},'allOf':[{'required':['a']},{'properties':{'a':{'type':"
     "'string'}}}],'anyOf':[{'required':['a','b']},{'properties':{'a':{}}}]}",
     "{'a':1}", NULL,
     "{'properties':{'b':{}},'allOf':[{},{'properties':{}}],'anyOf':[{'required':['b']},"
     "{'properties':{}}]}"},
    {"a requirement in one part, the member in another",
     "{'allOf':[{'required':['a']},{'properties':{'a':{'type':'object','properties':{'b':{},"
     "'c':{}},'required':['b','c']}}}]}",
     "{'/a/b':1}", NULL,
     "{'allOf':[{},{'properties':{'a':{'type':'object','properties':{'c':{}},'required':['c']}},"
     "'required':['a']}]}"},
    {"alternatives that a frozen name told apart",
     "{'oneOf':[{'properties':{'kind':{'const':'x'},'p':{}},'required':['kind','p']},"
     "{'properties':{'kind':{'const':'y'}},'required':['kind']}]}",
     "{'kind':'x'}", NULL,
     "{'anyOf':[{'properties':{'p':{}},'required':['p']},{'properties':{}}]}"},
    {"alternatives beside others",
     "{'anyOf':[{'required':['p']},{'required':['q']}],'oneOf':[{'required':['kind']},"
     "{'required':['p']}]}",
     "{'kind':'x'}", NULL,
     "{'anyOf':[{'required':['p']},{'required':['q']}],'allOf':[{'anyOf':[{},"
     "{'required':['p']}]}]}"},
    {"alternatives that don't speak of it",
     "{'properties':{'a':{}},'oneOf':[{'required':['p']},"
     "{'required':['q']}]}",
     "{'a':1}", NULL, "{'properties':{},'oneOf':[{'required':['p']},{'required':['q']}]}"},
    {"a condition on it",
     "{'if':{'properties':{'mode':{'const':1}},'required':['mode']},'then':{'required':['x']},"
     "'else':{'required':['y','mode']},'properties':{'mode':{},'x':{},'y':{}}}",
     "{'mode':1}", NULL,
     "{'anyOf':[{'allOf':[{'properties':{}},{'required':['x']}]},{'required':['y']}],"
     "'properties':{'x':{},'y':{}}}"},
    {"a condition on something else",
     "{'if':{'required':['x']},'then':{'required':['a','y']},'properties':{'a':{}}}", "{'a':1}",
     NULL, "{'if':{'required':['x']},'then':{'required':['y']},'properties':{}}"},
    {"branches without a condition mean nothing",
     "{'then':{'required':['a']},'properties':{'a':{}}}", "{'a':1}", NULL, "{'properties':{}}"},
    {"negations",
     "{'properties':{'a':{}},'not':{'required':['a']},'allOf':[{'not':{'required':['b']}}]}",
     "{'a':1}", NULL, "{'properties':{},'allOf':[{'not':{'required':['b']}}]}"},
    {"what depends on a frozen member holds always",
     "{'properties':{'a':{},'b':{},'c':{}},'required':['b'],'dependentRequired':{'a':['b','c'],"
     "'b':['a'],'c':['a','b']},'dependentSchemas':{'a':{'minProperties':2},'c':{'required':['a',"
     "'d']}}}",
     "{'a':1}", NULL,
     "{'properties':{'b':{},'c':{}},'required':['b','c'],'dependentRequired':{'c':['b']},"
     "'dependentSchemas':{'c':{'required':['d']}},'allOf':[{'minProperties':1}]}"},
    {"dependencies of both forms",
     "{'properties':{'a':{},'b':{}},'dependencies':{'a':['b'],'b':{'required':['a']}}}", "{'a':1}",
     NULL, "{'properties':{'b':{}},'dependencies':{'b':{}},'required':['b']}"},
    {"counts", "{'properties':{'a':{},'b':{}},'minProperties':3,'maxProperties':4}",
     "{'a':1,'/b/c':1}", NULL,
     "{'properties':{'b':{'type':'object'}},'minProperties':1,'maxProperties':3}"},
    {"counts end at nothing", "{'properties':{'a':{},'b':{}},'minProperties':1,'maxProperties':1}",
     "{'a':1,'b':1}", NULL, "{'properties':{},'maxProperties':0}"},

    /* values and words */
    {"annotations lose the member",
     "{'properties':{'a':{},'b':{}},'default':{'a':1,'b':2},'examples':[{'a':1},{'b':2},3]}",
     "{'a':1}", NULL, "{'properties':{'b':{}},'default':{'b':2},'examples':[{},{'b':2},3]}"},
    {"values of an object around it",
     "{'properties':{'o':{'type':'object','properties':{'k':{},'l':{}},'default':{'k':1,'l':2},"
     "'enum':[{'k':1},{'l':2}]},'p':{'type':'object','const':{'k':1}},'q':{'type':'object',"
     "'enum':[{'l':1}]}}}",
     "{'/o/k':1,'/p/k':1,'/q/k':1}", NULL,
     "{'properties':{'o':{'type':'object','properties':{'l':{}},'default':{'l':2}},"
     "'p':{'type':'object'},'q':{'type':'object','enum':[{'l':1}]}}}"},
    {"values of the top about something deep",
     "{'properties':{'o':{'properties':{'k':{}}}},"
     "'default':{'o':{'k':1,'l':2}}}",
     "{'/o/k':1}", NULL,
     "{'properties':{'o':{'properties':{},'type':'object'}},'default':{'o':{'l':2}}}"},
    {"keywords of others that mention it",
     "{'properties':{'a':{},'b':{'x-hint':'a'}},'x-order':['a','b'],'x-other':{'b':1},"
     "'discriminator':{'propertyName':'a'},'x-map':{'a':1},'description':'set a'}",
     "{'a':1}", NULL,
     "{'properties':{'b':{'x-hint':'a'}},'x-other':{'b':1},'description':'set a'}"},

    /* references */
    {"a referenced object is copied along the way, others keep theirs",
     "{'properties':{'x':{'$ref':'#/$defs/P'},'y':{'$ref':'#/$defs/P'}},'required':['x','y'],"
     "'$defs':{'P':{'type':'object','properties':{'k':{},'l':{}},'required':['k']}}}",
     "{'/x/k':1}", NULL,
     "{'properties':{'x':{'type':'object','properties':{'l':{}}},'y':{'$ref':'#/$defs/P'}},"
     "'required':['y'],'$defs':{'P':{'type':'object','properties':{'k':{},'l':{}},"
     "'required':['k']}}}"},
    {"a definition that nobody needs any more goes",
     "{'properties':{'x':{'$ref':'#/$defs/P'}},'$defs':{'P':{'type':'object','properties':"
     "{'k':{},'l':{'$ref':'#/$defs/L'}}},'L':{'type':'string'},'unused':{'properties':"
     "{'k':{}}}}}",
     "{'/x/k':1}", NULL,
     "{'properties':{'x':{'type':'object','properties':{'l':{'$ref':'#/$defs/L'}}}},"
     "'$defs':{'L':{'type':'string'}}}"},
    {"the arguments themselves behind a reference",
     "{'$ref':'#/$defs/Args','$defs':{'Args':{'type':'object','properties':{'a':{},'b':{}},"
     "'required':['a']}}}",
     "{'a':1}", NULL, "{'type':'object','properties':{'b':{}}}"},
    {"chains of references",
     "{'properties':{'x':{'$ref':'#/$defs/A'}},'$defs':{'A':{'$ref':'#/$defs/B','title':'t'},"
     "'B':{'$ref':'#/$defs/C'},'C':{'type':'object','properties':{'k':{},'l':{}}}}}",
     "{'/x/k':1}", NULL,
     "{'properties':{'x':{'title':'t','type':'object','properties':{'l':{}}}}}"},
    {"a reference beside other keywords",
     "{'properties':{'x':{'$ref':'#/$defs/P','description':'d','maxProperties':9}},'$defs':{'P':"
     "{'type':'object','properties':{'k':{}},'description':'p'}}}",
     "{'/x/k':1}", NULL,
     "{'properties':{'x':{'description':'d','maxProperties':8,'type':'object','allOf':["
     "{'type':'object','properties':{},'description':'p'}]}}}"},
    {"a text of the user's own wins",
     "{'properties':{'x':{'$ref':'#/$defs/P','description':'d'}},'$defs':{'P':"
     "{'type':'object','properties':{'k':{}},'description':'p'}}}",
     "{'/x/k':1}", NULL,
     "{'properties':{'x':{'description':'d','type':'object','properties':{}}}}"},
    {"a cycle: deeper ones keep theirs",
     "{'properties':{'n':{'$ref':'#/$defs/N'}},'$defs':{'N':{'type':'object','properties':"
     "{'k':{},'next':{'$ref':'#/$defs/N'}},'required':['k']}}}",
     "{'/n/k':1}", NULL,
     "{'properties':{'n':{'type':'object','properties':{'next':{'$ref':'#/$defs/N'}}}},"
     "'$defs':{'N':{'type':'object','properties':{'k':{},'next':{'$ref':'#/$defs/N'}},"
     "'required':['k']}}}"},
    {"a cycle, two turns down",
     "{'properties':{'n':{'$ref':'#/$defs/N'}},'$defs':{'N':{'type':'object','properties':"
     "{'k':{},'next':{'$ref':'#/$defs/N'}}}}}",
     "{'/n/next/k':1}", NULL,
     "{'properties':{'n':{'type':'object','properties':{'k':{},'next':{'type':'object',"
     "'properties':{'next':{'$ref':'#/$defs/N'}}}}}},'$defs':{'N':{'type':'object',"
     "'properties':{'k':{},'next':{'$ref':'#/$defs/N'}}}}}"},
    {"a cycle through the root: the inner root keeps its members",
     "{'type':'object','properties':{'a':{},'child':{'$ref':'#'}},'required':['a']}", "{'a':1}",
     NULL,
     "{'type':'object','properties':{'child':{'$ref':'#/$defs/part1'}},'$defs':{'part1':"
     "{'type':'object','properties':{'a':{},'child':{'$ref':'#/$defs/part1'}},"
     "'required':['a']}}}"},
    {"a reference to what is frozen keeps what it had",
     "{'properties':{'secret':{'type':'integer'},'other':{'$ref':'#/properties/secret'}}}",
     "{'secret':1}", NULL,
     "{'properties':{'other':{'$ref':'#/$defs/part1'}},'$defs':{'part1':{'type':'integer'}}}"},
    {"a taken name is not taken again",
     "{'properties':{'s':{'type':'integer'},'o':{'$ref':'#/properties/s'},'p':{'$ref':"
     "'#/$defs/part1'}},'$defs':{'part1':{}}}",
     "{'s':1}", NULL,
     "{'properties':{'o':{'$ref':'#/$defs/part2'},'p':{'$ref':'#/$defs/part1'}},'$defs':"
     "{'part2':{'type':'integer'},'part1':{}}}"},
    {"anchors",
     "{'properties':{'x':{'$ref':'#P'},'y':{'$ref':'#P'}},'$defs':{'Z':{'$anchor':'P',"
     "'type':'object','properties':{'k':{}}}}}",
     "{'/x/k':1}", NULL,
     "{'properties':{'x':{'type':'object','properties':{}},'y':{'$ref':'#/$defs/part1'}},"
     "'$defs':{'part1':{'type':'object','properties':{'k':{}}}}}"},
    {"dynamic references",
     "{'$dynamicAnchor':'n','type':'object','properties':{'k':{},'next':{'$dynamicRef':'#n'}}}",
     "{'/next/k':1}", NULL,
     "{'type':'object','properties':{'k':{},'next':{'type':'object','properties':{"
     "'next':{'$ref':'#/$defs/part1'}}}},'$defs':{'part1':{'type':'object','properties':"
     "{'k':{},'next':{'$ref':'#/$defs/part1'}}}}}"},
    {"escapes in a reference",
     "{'properties':{'x':{'$ref':'#/$defs/a~1b%25c'},'y':{'$ref':'#/$defs/a~1b%25c'}},"
     "'$defs':{'a/b%c':{'type':'object','properties':{'k':{}}}}}",
     "{'/x/k':1}", NULL,
     "{'properties':{'x':{'type':'object','properties':{}},'y':{'$ref':'#/$defs/a~1b%25c'}},"
     "'$defs':{'a/b%c':{'type':'object','properties':{'k':{}}}}}"},
    {"a document with an identifier",
     "{'$id':'https://h/s','properties':{'x':{'$ref':'https://h/s#/$defs/P'},'y':{'$ref':"
     "'#/$defs/P'}},'$defs':{'P':{'type':'object','properties':{'k':{}}}}}",
     "{'/x/k':1}", NULL,
     "{'$id':'https://h/s','properties':{'x':{'type':'object','properties':{}},'y':{'$ref':"
     "'#/$defs/P'}},'$defs':{'P':{'type':'object','properties':{'k':{}}}}}"},
    {"nested definitions move up",
     "{'properties':{'x':{'type':'object','$defs':{'L':{'type':'string'}},'properties':{'k':{},"
     "'l':{'$ref':'#/properties/x/$defs/L'}}}}}",
     "{'/x/k':1}", NULL,
     "{'properties':{'x':{'type':'object','properties':{'l':{'$ref':'#/$defs/part1'}}}},"
     "'$defs':{'part1':{'type':'string'}}}"},
    {"draft-07",
     "{'$schema':'http://json-schema.org/draft-07/schema#','properties':{'x':{'$ref':"
     "'#/definitions/P','required':['ignored'],'properties':{'k':{}}},'y':{'$ref':'#/definitions/"
     "P',"
     "'properties':{'k':{}}},'z':{}},'definitions':{'P':{'type':'object','properties':{'k':{},"
     "'l':{}}}}}",
     "{'/x/k':1,'z':1}", NULL,
     "{'$schema':'http://json-schema.org/draft-07/schema#','properties':{'x':{'type':'object',"
     "'properties':{'l':{}}},'y':{'$ref':'#/definitions/P'}},'definitions':{'P':{'type':'object',"
     "'properties':{'k':{},'l':{}}}}}"},
    {"an endless reference", "{'allOf':[{'$ref':'#'}],'properties':{'a':{}}}", "{'a':1}", NULL,
     NULL},
    {"an endless reference through definitions",
     "{'properties':{'x':{'$ref':'#/$defs/A'}},'$defs':{'A':{'anyOf':[{'$ref':'#/$defs/B'}]},"
     "'B':{'anyOf':[{'$ref':'#/$defs/A'}]}}}",
     "{'/x/k':1}", NULL, NULL},
    {"an endless reference elsewhere is nobody's business",
     "{'properties':{'x':{'$ref':'#/$defs/A'},'a':{}},'$defs':{'A':{'anyOf':[{'$ref':"
     "'#/$defs/A'}]}}}",
     "{'a':1}", NULL,
     "{'properties':{'x':{'$ref':'#/$defs/A'}},'$defs':{'A':{'anyOf':[{'$ref':'#/$defs/A'}]}}}"},
    {"a reference to nothing", "{'properties':{'a':{},'x':{'$ref':'#/$defs/no'}}}", "{'a':1}", NULL,
     NULL},
    {"a part of its own", "{'properties':{'a':{},'x':{'$id':'https://h/x','type':'object'}}}",
     "{'a':1}", NULL, NULL},

    /* defaults */
    {"a default is shown and not required",
     "{'properties':{'a':{'type':'string'},'b':{}},'required':['a','b']}", NULL, "{'a':'x'}",
     "{'properties':{'a':{'type':'string','default':'x'},'b':{}},'required':['b']}"},
    {"a default of another kind", "{'properties':{'a':{'default':1},'b':true},'required':['b']}",
     NULL, "{'a':null,'b':2}", "{'properties':{'a':{'default':null},'b':true}}"},
    {"a default two levels down",
     "{'properties':{'a':{'type':['object','null'],'properties':{'b':{}},'required':['b']}},"
     "'required':['a']}",
     NULL, "{'/a/b':1}",
     "{'properties':{'a':{'type':['object','null'],'properties':{'b':{'default':1}}}}}"},
    {"a default behind a reference",
     "{'properties':{'x':{'$ref':'#/$defs/P'},'y':{'$ref':'#/$defs/P'}},'$defs':{'P':{'type':"
     "'object','properties':{'k':{}}}}}",
     NULL, "{'/x/k':1}",
     "{'properties':{'x':{'type':'object','properties':{'k':{'default':1}}},'y':{'$ref':"
     "'#/$defs/P'}},'$defs':{'P':{'type':'object','properties':{'k':{}}}}}"},
    {"a default of what is a reference",
     "{'properties':{'x':{'$ref':'#/$defs/P'}},'required':['x'],"
     "'$defs':{'P':{'type':'integer'}}}",
     NULL, "{'x':1}",
     "{'properties':{'x':{'$ref':'#/$defs/P','default':1}},'$defs':{'P':{'type':'integer'}}}"},
    {"a default without what is frozen in it",
     "{'properties':{'a':{'type':'object','properties':{'b':{},'c':{}}}}}", "{'/a/b':1}",
     "{'a':{'b':1,'c':2}}",
     "{'properties':{'a':{'type':'object','properties':{'c':{}},'default':{'c':2}}}}"},
    {"a default that is frozen is never seen",
     "{'properties':{'a':{'properties':{'b':{}}},'c':{}}}", "{'a':{}}", "{'/a/b':1,'a':2,'c':3}",
     "{'properties':{'c':{'default':3}}}"},
    {"a default and who depends on it",
     "{'properties':{'a':{},'b':{}},'dependentRequired':{'b':['a'],'a':['b']},'minProperties':1}",
     NULL, "{'a':1}", "{'properties':{'a':{'default':1},'b':{}},'dependentRequired':{'a':['b']}}"},

    /* broken keys */
    {"a broken escape", "{}", "{'/a~2':1}", NULL, NULL},
    {"a broken escape at the end", "{}", NULL, "{'/a~':1}", NULL},
    {"too many tokens", "{}", "{'/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17':1}", NULL, NULL},
    {"as many tokens as may be", "{}", "{'/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16':1}", NULL, "{}"},
    {"not an object", "{}", "[]", NULL, NULL},
    {"not an object either", "{}", NULL, "7", NULL},
    {"no schema", "true", "{'a':1}", NULL, NULL},
};

static void frozen_places_leave_a_sound_schema(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(strips); ++i) {
        json_t *schema = parse(strips[i].schema);
        json_t *frozen = parse(strips[i].frozen);
        json_t *defaults = parse(strips[i].defaults);
        json_t *want = parse(strips[i].want);
        json_t *before = json_deep_copy(schema);
        json_t *got = NULL;
        char why[128] = "";
        mcp_wire_status_t status =
            mcp_view_schema_strip(schema, frozen, defaults, &got, why, sizeof(why));

        if ((status == MCP_OK) != (want != NULL) || (want != NULL && !json_equal(got, want))) {
            print_error("%s (%s)\n", strips[i].name, why);
            say("got", got);
            say("want", want);
            fail();
        }
        assert_int_equal(why[0] == '\0', want != NULL);
        assert_true(json_equal(schema, before));
        assert_true(want == NULL || compiled(got) != NULL);
        json_decref(before);
        json_decref(got);
        json_decref(want);
        json_decref(defaults);
        json_decref(frozen);
        json_decref(schema);
    }
}

static void the_order_of_properties_stays(void **state)
{
    json_t *schema = parse("{'properties':{'z':{},'m':{},'a':{}},'required':['z','m','a']}");
    json_t *frozen = parse("{'m':1}");
    json_t *got = NULL;
    char *text;

    (void)state;
    assert_int_equal(mcp_view_schema_strip(schema, frozen, NULL, &got, NULL, 0), MCP_OK);
    text = json_dumps(got, JSON_COMPACT);
    assert_string_equal(text, "{\"properties\":{\"z\":{},\"a\":{}},\"required\":[\"z\",\"a\"]}");
    free(text);
    json_decref(got);
    json_decref(frozen);
    json_decref(schema);
}

static void bounds_hold_at_the_limit_and_one_above(void **state)
{
    json_t *schema = parse("{'properties':{'a':{}}}");

    (void)state;
    for (int more = 0; more <= 1; ++more) {
        json_t *keys = json_object();
        json_t *long_key = json_object();
        char name[MCP_VIEW_SCHEMA_POINTER + 2];
        json_t *got = NULL;
        mcp_wire_status_t want = more ? MCP_E_SIZE : MCP_OK;

        for (int i = 0; i < MCP_VIEW_SCHEMA_KEYS + more; ++i) {
            (void)snprintf(name, sizeof(name), "k%d", i);
            assert_int_equal(json_object_set_new(keys, name, json_true()), 0);
        }
        memset(name, 'x', sizeof(name));
        name[MCP_VIEW_SCHEMA_POINTER + more] = '\0';
        assert_int_equal(json_object_set_new(long_key, name, json_true()), 0);
        name[0] = '/';
        assert_int_equal(json_object_set_new(long_key, name, json_true()), 0);
        assert_int_equal(mcp_view_schema_strip(schema, keys, NULL, &got, NULL, 0), want);
        json_decref(got);
        got = NULL;
        assert_int_equal(mcp_view_schema_strip(schema, NULL, keys, &got, NULL, 0), want);
        json_decref(got);
        got = NULL;
        assert_int_equal(mcp_view_schema_strip(schema, long_key, NULL, &got, NULL, 0), want);
        json_decref(got);
        json_decref(long_key);
        json_decref(keys);
    }
    json_decref(schema);
}

/* Each definition mentions the next one twice: 2^40 ways to the end. */
static void schemas_that_explode_are_refused(void **state)
{
    json_t *defs = json_object();
    json_t *schema;
    json_t *frozen = parse("{'a':1}");
    json_t *got = NULL;
    char why[128];

    (void)state;
    for (int i = 0; i < 40; ++i) {
        char *name = apr_psprintf(pool, "d%d", i);
        char *next = apr_psprintf(pool, "#/$defs/d%d", i + 1);

        assert_int_equal(
            json_object_set_new(
                defs, name, json_pack("{s:[{s:s},{s:s}]}", "anyOf", "$ref", next, "$ref", next)),
            0);
    }
    assert_int_equal(
        json_object_set_new(defs, "d40", parse("{'properties':{'a':{}},'required':['a']}")), 0);
    schema = json_pack("{s:s,s:o}", "$ref", "#/$defs/d0", "$defs", defs);
    assert_non_null(schema);
    assert_int_equal(mcp_view_schema_strip(schema, frozen, NULL, &got, why, sizeof(why)),
                     MCP_E_SIZE);
    assert_null(got);
    (void)mcp_view_schema_knows(schema, "a"); /* ends, whatever it says */
    json_decref(schema);
    json_decref(frozen);
}

static void no_reason_names_a_key_or_a_value(void **state)
{
    static const char *const schemas[] = {
        "{'properties':{'topsecret':{},'x':{'$ref':'#/$defs/topsecret'}}}",
        "{'allOf':[{'$ref':'#'}],'properties':{'topsecret':{}}}", "7"};

    (void)state;
    for (size_t i = 0; i < ROWS(schemas); ++i) {
        json_t *schema = parse(schemas[i]);
        json_t *frozen = parse("{'topsecret':'topsecret'}");
        json_t *got = NULL;
        char why[128] = "";

        assert_int_not_equal(mcp_view_schema_strip(schema, frozen, NULL, &got, why, sizeof(why)),
                             MCP_OK);
        assert_true(strlen(why) > 10);
        assert_null(strstr(why, "secret"));
        json_decref(frozen);
        json_decref(schema);
    }
}

/* --- what is known ------------------------------------------------------------------------ */

static const struct {
    const char *schema, *key;
    int is_known;
} knowns[] = {
    {"{'type':'object','properties':{'a':{}}}", "a", 1},
    {"{'type':'object','properties':{'a':{}}}", "/a", 1},
    {"{'type':'object','properties':{'a':{}}}", "b", 0},
    {"{'type':'object','properties':{'a':{}},'additionalProperties':true}", "b", 0},
    {"{'type':'object'}", "b", 1}, /* open */
    {"{'type':'object','properties':{}}", "b", 1},
    {"{'type':'object','additionalProperties':false}", "b", 0},
    {"{'type':'object','unevaluatedProperties':false}", "b", 0},
    {"{'type':'object','additionalProperties':{'type':'string'}}", "b", 1},
    {"{'type':'object','additionalProperties':{'type':'string'}}", "/b/c", 0},
    {"{'type':'object','additionalProperties':{'type':'object','properties':{'c':{}}}}", "/b/c", 1},
    {"{'type':'object','additionalProperties':{'type':'object','properties':{'c':{}}}}", "/b/d", 0},
    {"{'properties':{'a':{'type':'object','properties':{'b':{}}}}}", "/a/b", 1},
    {"{'properties':{'a':{'type':'object','properties':{'b':{}}}}}", "/a/c", 0},
    {"{'properties':{'a':{'type':'object'}}}", "/a/c/d/e", 1},
    {"{'properties':{'a':{}}}", "/a/c", 1},
    {"{'properties':{'a':true}}", "/a/c", 1},
    {"{'properties':{'a':false}}", "/a/c", 0},
    {"{'properties':{'a':{'type':'string'}}}", "/a/c", 0},
    {"{'properties':{'a':{'type':['string','null']}}}", "/a/c", 0},
    {"{'properties':{'a':{'type':['object','null'],'properties':{'c':{}}}}}", "/a/c", 1},
    {"{'properties':{'a':{'type':'array','items':{'properties':{'b':{}}}}}}", "/a/0", 0},
    {"{'properties':{'a':{'type':'array','items':{'properties':{'b':{}}}}}}", "/a/0/b", 0},
    {"{'properties':{'a':{'type':'array','items':{'properties':{'b':{}}}}}}", "/a/b", 0},
    {"{'properties':{'a':{'items':{}}}}", "/a/x", 0},
    {"{'properties':{'a':{}}}", "/a/0", 0},
    {"{'properties':{'a':{}}}", "/a/-", 0},
    {"{'properties':{'a':{}}}", "/a/b/7", 0},
    {"{'properties':{'a':{'properties':{'0':{}}}}}", "/a/0", 0},
    {"{'properties':{'0':{}}}", "0", 1},
    {"{'properties':{'0':{}}}", "/0", 1},
    {"{'properties':{'a/b':{}}}", "a/b", 1},
    {"{'properties':{'a/b':{}}}", "/a~1b", 1},
    {"{'properties':{'a/b':{}}}", "/a/b", 0},
    {"{'properties':{'a':{}}}", "/a~2", 0},
    {"{'properties':{'a':{'$ref':'#/$defs/P'}},'$defs':{'P':{'properties':{'k':{}}}}}", "/a/k", 1},
    {"{'properties':{'a':{'$ref':'#/$defs/P'}},'$defs':{'P':{'properties':{'k':{}}}}}", "/a/l", 0},
    {"{'properties':{'a':{'$ref':'#/$defs/P'}},'$defs':{'P':{'type':'string'}}}", "/a/l", 0},
    {"{'$ref':'#/$defs/P','$defs':{'P':{'properties':{'k':{}}}}}", "k", 1},
    {"{'$ref':'#/$defs/P','$defs':{'P':{'properties':{'k':{}}}}}", "P", 0},
    {"{'properties':{'n':{'$ref':'#'}}}", "/n/n/n/n", 1},
    {"{'properties':{'n':{'$ref':'#'}}}", "/n/n/m", 0},
    {"{'allOf':[{'$ref':'#'}],'properties':{'a':{}}}", "b", 0},
    {"{'allOf':[{'properties':{'a':{}}},{'properties':{'b':{'properties':{'c':{}}}}}]}", "/b/c", 1},
    {"{'allOf':[{'properties':{'a':{'type':'string'}}},{'properties':{'a':{}}}]}", "/a/x", 0},
    {"{'properties':{'a':{}},'dependentSchemas':{'a':{'properties':{'b':{}}}}}", "b", 1},
    {"{'properties':{'a':{}},'if':{'required':['a']},'then':{'properties':{'b':{}}}}", "b", 1},
    {"{'properties':{'a':{'anyOf':[{'type':'object','properties':{'c':{}}},{'type':'null'}]}}}",
     "/a/c", 1},
    {"{'properties':{'a':{'anyOf':[{'type':'object','properties':{'c':{}}},{'type':'null'}]}}}",
     "/a/d", 0},
    {"{'properties':{'a':{'anyOf':[{'type':'string'},{'type':'null'}]}}}", "/a/d", 0},
    {"{'properties':{'a':{'oneOf':[{'type':'object'},{'type':'null'}]}}}", "/a/d", 1},
    {"{'$schema':'http://json-schema.org/draft-07/schema#','properties':{'a':{'$ref':"
     "'#/definitions/P','properties':{'x':{}}}},'definitions':{'P':{'properties':{'k':{}}}}}",
     "/a/x", 0},
    {"{'$schema':'http://json-schema.org/draft-07/schema#','properties':{'a':{'$ref':"
     "'#/definitions/P','properties':{'x':{}}}},'definitions':{'P':{'properties':{'k':{}}}}}",
     "/a/k", 1},
    {"{'properties':{'a':{'anyOf':[{'$ref':'#/$defs/S'},{'type':'null'}]}},'$defs':{'S':{'type':"
     "'string'}}}",
     "/a/d", 0},
    {"{'properties':{'a':{'anyOf':[{'$ref':'#/$defs/S'},{'type':'null'}]}},'$defs':{'S':{'type':"
     "'object'}}}",
     "/a/d", 1},
    {"7", "a", 0},
};

static void a_place_is_known_if_it_is_declared_or_open(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(knowns); ++i) {
        json_t *schema = parse(knowns[i].schema);

        if (mcp_view_schema_knows(schema, knowns[i].key) != knowns[i].is_known) {
            print_error("%s %s\n", knowns[i].schema, knowns[i].key);
            fail();
        }
        json_decref(schema);
    }
    assert_int_equal(mcp_view_schema_knows(NULL, "a"), 0);
}

static void declared_names_are_those_of_all_that_applies(void **state)
{
    static const struct {
        const char *schema, *one, *two;
        const char *want; /* NULL: nothing comes out */
    } rows[] = {
        {"{'properties':{'a':{},'b':{}}}", NULL, NULL, "{'a':null,'b':null}"},
        {"{'properties':{'a':{'properties':{'c':{}},'additionalProperties':true}}}", "a", NULL,
         "{'c':null}"},
        {"{'properties':{'a':{'$ref':'#/$defs/A'}},'$defs':{'A':{'allOf':[{'properties':{'c':{}}},"
         "{'anyOf':[{'properties':{'d':{}}},{'properties':{'e':{}}}]}]}}}",
         "a", NULL, "{'c':null,'d':null,'e':null}"},
        {"{'properties':{'a':{'properties':{'b':{'properties':{'x[]':{}}}}}}}", "a", "b",
         "{'x[]':null}"},
        {"{'properties':{'a':{}}}", "a", NULL, "{}"},
        {"{'properties':{'a':{}}}", "b", NULL, "{}"},
        {"{'additionalProperties':{'properties':{'c':{}}}}", "any", NULL, "{'c':null}"},
        {"{'patternProperties':{'^a':{}}}", NULL, NULL, "{}"},
        {"{'$ref':'#'}", "a", NULL, "{}"},
        {"7", NULL, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); ++i) {
        const char *const path[] = {rows[i].one, rows[i].two};
        json_t *schema = parse(rows[i].schema);
        json_t *want = parse(rows[i].want);
        json_t *got = mcp_view_schema_names(schema, path,
                                            rows[i].one == NULL   ? 0
                                            : rows[i].two == NULL ? 1
                                                                  : 2);

        if ((want == NULL) != (got == NULL) || (want != NULL && !json_equal(got, want))) {
            say(rows[i].schema, got);
            fail();
        }
        json_decref(got);
        json_decref(want);
        json_decref(schema);
    }
}

/* --- choosing an account ---------------------------------------------------------------------- */

#define CHOICE                                                                                     \
    "'connection':{'type':'string','enum':['home','work'],'description':'The account to use.'}"

static const struct {
    const char *name, *schema;
    int is_required;
    const char *want, *renamed;
} choices[] = {
    {"an empty schema", "{}", 1, "{'properties':{" CHOICE "},'required':['connection']}", ""},
    {"beside others",
     "{'type':'object','properties':{'a':{}},'required':['a'],'additionalProperties':false}", 1,
     "{'type':'object','properties':{" CHOICE ",'a':{}},'required':['a','connection'],"
     "'additionalProperties':false}",
     ""},
    {"one account left", "{'properties':{'a':{}},'required':['a']}", 0,
     "{'properties':{" CHOICE ",'a':{}},'required':['a']}", ""},
    {"an own one gives way",
     "{'properties':{'connection':{'type':'integer'},'a':{}},'required':['connection'],"
     "'dependentRequired':{'connection':['a'],'a':['connection']}}",
     1,
     "{'properties':{" CHOICE ",'arg_connection':{'type':'integer'},'a':{}},'required':"
     "['arg_connection','connection'],'dependentRequired':{'arg_connection':['a'],"
     "'a':['arg_connection']}}",
     "arg_connection"},
    {"and again",
     "{'properties':{'connection':{'type':'integer'},'arg_connection':{'type':'boolean'}}}", 0,
     "{'properties':{" CHOICE ",'arg_arg_connection':{'type':'integer'},'arg_connection':"
     "{'type':'boolean'}}}",
     "arg_arg_connection"},
    {"an own one that is only asked for", "{'required':['connection']}", 0,
     "{'properties':{" CHOICE "},'required':['arg_connection']}", "arg_connection"},
    {"in parts of the top level",
     "{'properties':{'connection':{}},'allOf':[{'required':['connection']},{'properties':"
     "{'connection':{'minLength':1}}}],'anyOf':[{'required':['connection']},{'required':['a']}],"
     "'oneOf':[{'required':['connection']},{'required':['b']}],'not':{'required':['connection']},"
     "'if':{'required':['connection']},'then':{'required':['a']}}",
     0,
     "{'properties':{" CHOICE ",'arg_connection':{}},'allOf':[{'required':['arg_connection']},"
     "{'properties':{'arg_connection':{'minLength':1}}}],'anyOf':[{'required':"
     "['arg_connection']},{'required':['a']}],'oneOf':[{'required':['arg_connection']},"
     "{'required':['b']}],'not':{'required':['arg_connection']},'if':{'required':"
     "['arg_connection']},'then':{'required':['a']}}",
     "arg_connection"},
    {"not below the top",
     "{'properties':{'o':{'properties':{'connection':{}},'required':['connection']}}}", 0,
     "{'properties':{" CHOICE ",'o':{'properties':{'connection':{}},'required':['connection']}}}",
     ""},
    {"behind a reference that forbids others",
     "{'$ref':'#/$defs/A','$defs':{'A':{'type':'object','properties':{'connection':{},'a':{}},"
     "'additionalProperties':false}}}",
     1,
     "{'type':'object','properties':{" CHOICE ",'arg_connection':{},'a':{}},"
     "'additionalProperties':false,'required':['connection']}",
     "arg_connection"},
    {"a part that forbids others",
     "{'allOf':[{'properties':{'a':{}},'additionalProperties':false}]}", 0,
     "{'allOf':[{'properties':{'a':{},'connection':{}},'additionalProperties':false}],"
     "'properties':{" CHOICE "}}",
     ""},
    {"names, counts and values",
     "{'properties':{'connection':{}},'propertyNames':{'maxLength':3},'minProperties':1,"
     "'maxProperties':2,'default':{'connection':1}}",
     1,
     "{'properties':{" CHOICE ",'arg_connection':{}},'propertyNames':{'anyOf':[{'enum':"
     "['connection','arg_connection']},{'maxLength':3}]},'minProperties':2,'maxProperties':3,"
     "'default':{'arg_connection':1},'required':['connection']}",
     "arg_connection"},
    {"recursion keeps its own name", "{'properties':{'connection':{},'child':{'$ref':'#'}}}", 0,
     "{'properties':{" CHOICE ",'arg_connection':{},'child':{'$ref':'#/$defs/part1'}},'$defs':"
     "{'part1':{'properties':{'connection':{},'child':{'$ref':'#/$defs/part1'}}}}}",
     "arg_connection"},
    {"draft-07 ignores what stands beside a reference",
     "{'$schema':'http://json-schema.org/draft-07/schema#','$ref':'#/definitions/A',"
     "'properties':{'connection':{}},'definitions':{'A':{'properties':{'a':{}}}}}",
     0,
     "{'$schema':'http://json-schema.org/draft-07/schema#','allOf':[{'$ref':'#/definitions/A'}],"
     "'properties':{" CHOICE "},'definitions':{'A':{'properties':{'a':{}}}}}",
     ""},
};

static void a_merged_tool_asks_which_account(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(choices); ++i) {
        json_t *schema = parse(choices[i].schema);
        json_t *labels = parse("['home','work']");
        json_t *want = parse(choices[i].want);
        char name[MCP_VIEW_SCHEMA_NAME] = "untouched";
        const json_t *properties;

        assert_int_equal(mcp_view_schema_choose(schema, labels, choices[i].is_required, name),
                         MCP_OK);
        if (!json_equal(schema, want) || strcmp(name, choices[i].renamed) != 0) {
            print_error("%s: %s\n", choices[i].name, name);
            say("got", schema);
            say("want", want);
            fail();
        }
        properties = json_object_get(schema, "properties");
        assert_string_equal(json_object_iter_key(json_object_iter((json_t *)(uintptr_t)properties)),
                            "connection");
        assert_non_null(compiled(schema));
        json_decref(want);
        json_decref(labels);
        json_decref(schema);
    }
}

static void labels_that_cannot_be_chosen_change_nothing(void **state)
{
    static const char *const labels[] = {"[]", "{}", "[1]", "['a','a']", "['']", "null"};
    json_t *many = json_array();
    json_t *schema = parse("{'properties':{'a':{}}}");
    json_t *before = json_deep_copy(schema);
    char name[MCP_VIEW_SCHEMA_NAME];

    (void)state;
    for (size_t i = 0; i < ROWS(labels); ++i) {
        json_t *value = parse(labels[i]);

        assert_int_equal(mcp_view_schema_choose(schema, value, 1, name), MCP_E_FIELD);
        json_decref(value);
    }
    for (int i = 0; i <= MCP_VIEW_SCHEMA_LABELS; ++i) {
        assert_int_equal(json_array_append_new(many, json_sprintf("l%d", i)), 0);
    }
    assert_int_equal(mcp_view_schema_choose(schema, many, 1, name), MCP_E_SIZE);
    assert_true(json_equal(schema, before));
    assert_int_equal(json_array_remove(many, 0), 0);
    assert_int_equal(mcp_view_schema_choose(schema, many, 1, name), MCP_OK);
    json_decref(many);
    json_decref(before);
    json_decref(schema);
}

/* A caller's arguments for the schema with the choice are, renamed, arguments for the one without:
 * the two renamings are each other's mirror. */
static void a_choice_and_its_renaming_belong_together(void **state)
{
    json_t *plain = parse("{'properties':{'connection':{'type':'integer'},'a':{}},'required':"
                          "['connection'],'additionalProperties':false}");
    json_t *schema = json_deep_copy(plain);
    json_t *labels = parse("['home','work']");
    json_t *caller = parse("{'connection':'work','arg_connection':5,'a':1}");
    json_t *wrong = parse("{'connection':'other','arg_connection':5}");
    char name[MCP_VIEW_SCHEMA_NAME];
    json_t *rename;
    json_t *args = NULL;

    (void)state;
    assert_int_equal(mcp_view_schema_choose(schema, labels, 1, name), MCP_OK);
    assert_true(is_valid(compiled(schema), caller));
    assert_false(is_valid(compiled(schema), wrong));
    rename = json_pack("{s:n,s:s}", "connection", name, "connection");
    assert_int_equal(mcp_args_rename(caller, rename, pool, &args, NULL), APR_SUCCESS);
    assert_true(is_valid(compiled(plain), args));
    json_decref(rename);
    json_decref(wrong);
    json_decref(caller);
    json_decref(labels);
    json_decref(schema);
    json_decref(plain);
}

static void the_sentences_are_fixed(void **state)
{
    static const struct {
        const char *labels, *want;
    } cases[] = {
        {"['a']", "Set `connection`: a."},
        {"['a','b']", "Set `connection`: a, b."},
        {"['a','b','c']", "Set `connection`: a, b, c."},
        {"['a','b','c','d']", "Set `connection`: a, b, c and 1 more."},
        {"['a','b','c','d','e','f','g']", "Set `connection`: a, b, c and 4 more."},
    };
    char buf[256];
    json_t *labels = parse("['a','b','c','d']");
    json_t *none = parse("[]");

    (void)state;
    for (size_t i = 0; i < ROWS(cases); ++i) {
        json_t *value = parse(cases[i].labels);

        assert_int_equal(mcp_view_schema_text_choose(value, buf, sizeof(buf)), MCP_OK);
        assert_string_equal(buf, cases[i].want);
        json_decref(value);
    }
    assert_int_equal(mcp_view_schema_text_choose(none, buf, sizeof(buf)), MCP_E_FIELD);
    for (size_t size = 0; size < strlen(cases[3].want) + 1; ++size) {
        assert_int_equal(mcp_view_schema_text_choose(labels, buf, size), MCP_E_SPACE);
    }
    assert_int_equal(mcp_view_schema_text_choose(labels, buf, strlen(cases[3].want) + 1), MCP_OK);
    assert_string_equal(mcp_view_schema_text_frozen(), "Some values are frozen.");
    json_decref(none);
    json_decref(labels);
}

/* --- short of memory ------------------------------------------------------------------------ */

static unsigned allocations_left;

static void *scarce(size_t bytes)
{
    if (allocations_left == 0) {
        return NULL;
    }
    --allocations_left;
    return malloc(bytes);
}

/* One more allocation each time, until it is enough: nothing is lost, and nothing half made comes
 * out. */
static void short_of_memory_nothing_comes_out(void **state)
{
    json_t *schema = parse(
        "{'properties':{'a':{'$ref':'#/$defs/P'},'c':{'$ref':'#/properties/a'},'m':{}},'required':"
        "['a'],'$defs':{'P':{'type':'object','properties':{'k':{},'l':{}},'required':['k','l']}},"
        "'oneOf':[{'required':['m']},{'required':['c']}],'if':{'required':['m']},'then':{'required'"
        ":"
        "['c']},'dependentRequired':{'m':['c']},'minProperties':3,'default':{'m':1},'connection':"
        "1}");
    json_t *frozen = parse("{'/a/k':1,'m':2}");
    json_t *defaults = parse("{'c':{'l':1}}");
    json_t *labels = parse("['home','work']");
    unsigned runs = 0;

    (void)state;
    for (int is_choice = 0; is_choice < 2; ++is_choice) {
        mcp_wire_status_t status = MCP_E_NOMEM;

        for (unsigned room = 0; status != MCP_OK; ++room) {
            json_t *copy = json_deep_copy(schema);
            json_t *got = NULL;
            char name[MCP_VIEW_SCHEMA_NAME];

            allocations_left = room;
            json_set_alloc_funcs(scarce, free);
            status = is_choice ? mcp_view_schema_choose(copy, labels, 1, name)
                               : mcp_view_schema_strip(schema, frozen, defaults, &got, NULL, 0);
            json_set_alloc_funcs(malloc, free);
            assert_true(status == MCP_OK || (status == MCP_E_NOMEM && got == NULL));
            json_decref(got);
            json_decref(copy);
            assert_true(++runs < 10000);
        }
    }
    assert_true(runs > 100);
    json_decref(labels);
    json_decref(defaults);
    json_decref(frozen);
    json_decref(schema);
}

/* --- generated schemas ------------------------------------------------------------------------ */

static uint64_t seed;

/* xorshift: the same numbers in each run. */
static unsigned below(unsigned bound)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % bound);
}

/* Names say what they hold, so that parts which speak of the same member agree: s a string, n a
 * number, o an object. */
static const char *const names[] = {"s1", "n1", "o1", "s2", "o2", "n2"};

typedef struct shop {
    json_t *defs; /* may be referred to from anywhere */
    int with_references;
} shop_t;

static json_t *object_schema(shop_t *shop, int depth);

static json_t *member_schema(shop_t *shop, const char *name, int depth)
{
    if (name[0] == 's') {
        return below(2) ? json_pack("{s:s}", "type", "string")
                        : json_pack("{s:s,s:i}", "type", "string", "maxLength", 9);
    }
    return name[0] == 'n' ? json_pack("{s:s}", "type", "integer") : object_schema(shop, depth - 1);
}

/* Some part of an object, as keywords. */
static json_t *part_schema(shop_t *shop, int depth)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    json_t *schema = json_object();

    for (size_t i = 0; i < ROWS(names); ++i) {
        if (below(3) == 0 || (names[i][0] == 'o' && depth <= 0)) {
            continue;
        }
        if (below(4) != 0) {
            json_object_set_new(properties, names[i], member_schema(shop, names[i], depth));
        }
        if (below(2) != 0) {
            json_array_append_new(required, json_string(names[i]));
        }
    }
    if (below(4) != 0) {
        json_object_set_new(schema, "type",
                            below(4) != 0 ? json_string("object")
                                          : json_pack("[s,s]", "object", "null"));
    }
    json_object_set_new(schema, "properties", properties);
    if (json_array_size(required) > 0) {
        json_object_set_new(schema, "required", required);
    } else {
        json_decref(required);
    }
    return schema;
}

static json_t *object_schema(shop_t *shop, int depth)
{
    json_t *schema = part_schema(shop, depth);

    if (below(3) == 0) {
        json_t *all = json_array();

        for (unsigned i = 0; i < 1 + below(2); ++i) {
            json_array_append_new(all, below(3) == 0 ? object_schema(shop, depth - 1)
                                                     : part_schema(shop, depth));
        }
        json_object_set_new(schema, "allOf", all);
    }
    if (shop->with_references && below(3) == 0) {
        char *name = apr_psprintf(pool, "d%d", (int)json_object_size(shop->defs));

        json_object_set_new(shop->defs, name, schema);
        schema = json_pack("{s:o}", "$ref", json_sprintf("#/$defs/%s", name));
        if (below(4) == 0) {
            json_object_set_new(schema, "description", json_string("by reference"));
        }
        if (below(4) == 0) {
            json_object_set_new(schema, "required", json_pack("[s]", names[below(ROWS(names))]));
        }
    }
    return schema;
}

/* A value that has everything, to the depth given: of it all are cut. */
static json_t *whole(int depth)
{
    json_t *value = json_object();

    for (size_t i = 0; i < ROWS(names); ++i) {
        json_t *member = names[i][0] == 's'   ? json_string(below(2) ? "x" : "yy")
                         : names[i][0] == 'n' ? json_integer((json_int_t)below(5))
                         : depth > 0          ? whole(depth - 1)
                                              : json_object();

        json_object_set_new(value, names[i], member);
    }
    return value;
}

/* Drops members at random, or puts something else in the place of an object. */
static void thin(json_t *value, unsigned odds)
{
    for (size_t i = 0; i < ROWS(names); ++i) {
        if (below(odds) == 0) {
            (void)json_object_del(value, names[i]);
        } else if (names[i][0] == 'o' && below(12) == 0) {
            json_object_set_new(value, names[i],
                                below(2) ? json_null() : json_string("in the way"));
        } else if (json_is_object(json_object_get(value, names[i]))) {
            thin(json_object_get(value, names[i]), odds);
        }
    }
}

static json_t *at_pointer(json_t *value, const char *pointer)
{
    char *copy = apr_pstrdup(pool, pointer);
    char *last = NULL;

    for (char *token = apr_strtok(copy, "/", &last); token != NULL;
         token = apr_strtok(NULL, "/", &last)) {
        value = json_object_get(value, token);
    }
    return value;
}

/* Some places with the values that the whole has there. */
static json_t *some_places(const json_t *schema, json_t *all, unsigned count, int may_be_object)
{
    json_t *places = json_object();

    while (count-- > 0) {
        char *pointer = apr_psprintf(pool, "/%s", names[below(ROWS(names))]);

        while (pointer[strlen(pointer) - 2] == 'o' && below(4) != 0) {
            pointer = apr_pstrcat(pool, pointer, "/", names[below(ROWS(names))], NULL);
        }
        if (pointer[strlen(pointer) - 2] == 'o' && !may_be_object) {
            continue;
        }
        if (at_pointer(all, pointer) != NULL && mcp_view_schema_knows(schema, pointer)) {
            int is_top = strchr(pointer + 1, '/') == NULL && below(2) == 0;

            json_object_set_new(places, pointer + (is_top ? 1 : 0),
                                json_deep_copy(at_pointer(all, pointer)));
        }
    }
    return places;
}

/* A slow second look: all schemas that apply to the place's parent in the result, and none names the
 * place. The generated schemas have no other keywords. */
static void look_for(const json_t *root, const json_t *schema, const char *const *tokens,
                     size_t count, int depth)
{
    const json_t *all = json_object_get(schema, "allOf");
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    const json_t *required = json_object_get(schema, "required");

    assert_true(depth < 100);
    for (size_t i = 0; i < json_array_size(all); ++i) {
        look_for(root, json_array_get(all, i), tokens, count, depth + 1);
    }
    if (reference != NULL) {
        assert_memory_equal(reference, "#/$defs/", 8);
        assert_non_null(json_object_get(json_object_get(root, "$defs"), reference + 8));
        look_for(root, json_object_get(json_object_get(root, "$defs"), reference + 8), tokens,
                 count, depth + 1);
    }
    if (count > 1) {
        look_for(root, json_object_get(json_object_get(schema, "properties"), tokens[0]),
                 tokens + 1, count - 1, depth + 1);
        return;
    }
    assert_null(json_object_get(json_object_get(schema, "properties"), tokens[0]));
    for (size_t i = 0; i < json_array_size(required); ++i) {
        assert_string_not_equal(json_string_value(json_array_get(required, i)), tokens[0]);
    }
}

static void check_gone(const json_t *stripped, const json_t *frozen)
{
    for (void *at = json_object_iter((json_t *)(uintptr_t)frozen); at != NULL;
         at = json_object_iter_next((json_t *)(uintptr_t)frozen, at)) {
        const char *tokens[16];
        size_t count = 0;
        char *last = NULL;

        for (char *token = apr_strtok(apr_pstrdup(pool, json_object_iter_key(at)), "/", &last);
             token != NULL; token = apr_strtok(NULL, "/", &last)) {
            tokens[count++] = token;
        }
        look_for(stripped, stripped, tokens, count, 0);
    }
}

typedef struct tally {
    unsigned schemas, frozen, instances, valid, changed;
} tally_t;

/* Values that are no objects at places of objects stay out of frozen objects: they are themselves
 * valid. */
static void check_generated(shop_t *shop, tally_t *tally)
{
    json_t *schema = object_schema(shop, 3);
    json_t *all = whole(3);
    json_t *frozen;
    json_t *defaults;
    json_t *stripped = NULL;
    mcp_schema_t *original;
    mcp_schema_t *shown;
    char why[128] = "";

    if (json_object_size(shop->defs) > 0) {
        json_object_set_new(schema, "$defs", json_incref(shop->defs));
    }
    original = compiled(schema);
    assert_non_null(original);
    frozen = some_places(schema, all, below(4), 1);
    defaults = some_places(schema, all, below(3), 0);
    assert_int_equal(mcp_view_schema_strip(schema, frozen, defaults, &stripped, why, sizeof(why)),
                     MCP_OK);
    shown = compiled(stripped);
    assert_non_null(shown);
    check_gone(stripped, frozen);
    ++tally->schemas;
    tally->frozen += json_object_size(frozen) > 0 ? 1 : 0;
    tally->changed += !json_equal(schema, stripped);
    if (is_valid(original, all)) {
        for (int i = 0; i < 12; ++i) {
            json_t *caller = json_deep_copy(all);
            json_t *merged = NULL;
            json_t *own = NULL;

            thin(caller, 2 + below(8));
            ++tally->instances;
            assert_int_equal(mcp_args_strip(caller, frozen, pool, &own, NULL), APR_SUCCESS);
            if (is_valid(shown, own)) {
                ++tally->valid;
                assert_int_equal(mcp_args_merge(defaults, caller, frozen, pool, &merged, NULL),
                                 APR_SUCCESS);
                if (!is_valid(original, merged)) {
                    say("schema", schema);
                    say("frozen", frozen);
                    say("defaults", defaults);
                    say("stripped", stripped);
                    say("caller", caller);
                    say("merged", merged);
                    fail();
                }
            }
            json_decref(caller);
        }
    }
    json_decref(stripped);
    json_decref(defaults);
    json_decref(frozen);
    json_decref(all);
    json_decref(schema);
}

static void what_a_stripped_schema_takes_the_original_takes_after_the_merge(void **state)
{
    apr_pool_t *outer = pool;
    tally_t tally = {0, 0, 0, 0, 0};

    (void)state;
    seed = UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < 5000; ++i) {
        shop_t shop = {json_object(), i % 2};

        assert_int_equal(apr_pool_create(&pool, outer), APR_SUCCESS);
        check_generated(&shop, &tally);
        json_decref(shop.defs);
        apr_pool_destroy(pool);
        pool = outer;
    }
    print_message("%u schemas, %u with frozen places, %u changed, %u of %u instances taken\n",
                  tally.schemas, tally.frozen, tally.changed, tally.valid, tally.instances);
    assert_true(tally.frozen > tally.schemas / 2);
    assert_true(tally.changed > tally.schemas / 2);
    assert_true(tally.valid > 5000);
    assert_true(tally.instances - tally.valid > 5000);
}

/* --- real tools ----------------------------------------------------------------------------------- */

typedef struct real {
    unsigned tools, places, nested;
} real_t;

static int has_property(const json_t *schema, const char *name)
{
    return json_object_get(json_object_get(schema, "properties"), name) != NULL;
}

static const char *escaped(const char *name)
{
    char *ret = apr_pcalloc(pool, 2 * strlen(name) + 1);
    char *to = ret;

    for (; *name != '\0'; ++name) {
        if (*name == '~' || *name == '/') {
            *to++ = '~';
            *to++ = *name == '~' ? '0' : '1';
        } else {
            *to++ = *name;
        }
    }
    return ret;
}

static void strip_one(const json_t *schema, const char *key, const char *name, int is_top)
{
    json_t *frozen = json_pack("{s:i}", key, 1);
    json_t *got = NULL;
    char why[128] = "";

    assert_int_equal(mcp_view_schema_knows(schema, key), 1);
    if (mcp_view_schema_strip(schema, frozen, NULL, &got, why, sizeof(why)) != MCP_OK) {
        print_error("%s: %s\n", key, why);
        say("schema", schema);
        fail();
    }
    assert_non_null(compiled(got));
    assert_false(json_equal(schema, got));
    assert_true(!is_top || !has_property(got, name));
    json_decref(got);
    got = NULL;
    assert_int_equal(mcp_view_schema_strip(schema, NULL, frozen, &got, why, sizeof(why)), MCP_OK);
    assert_non_null(compiled(got));
    json_decref(got);
    json_decref(frozen);
}

/* Each member of a property that declares some itself. */
static void strip_nested(const json_t *schema, const json_t *member, const char *above, int depth,
                         real_t *real)
{
    json_t *properties = json_object_get(member, "properties");

    if (!json_is_object(properties) || depth > 6) {
        return;
    }
    for (void *at = json_object_iter(properties); at != NULL;
         at = json_object_iter_next(properties, at)) {
        const char *name = json_object_iter_key(at);
        const char *key = apr_pstrcat(pool, above, "/", escaped(name), NULL);

        if (depth == 0) {
            strip_one(schema, name, name, 1);
            ++real->places;
        } else if (strspn(name, "0123456789") != strlen(name)) {
            strip_one(schema, key, name, 0);
            ++real->nested;
        }
        strip_nested(schema, json_object_iter_value(at), key, depth + 1, real);
    }
}

static void strip_tools(const json_t *tools, real_t *real)
{
    apr_pool_t *outer = pool;

    for (size_t i = 0; i < json_array_size(tools); ++i) {
        json_t *schema = json_object_get(json_array_get(tools, i), "inputSchema");
        json_t *labels = json_pack("[s,s]", "home", "work");
        char name[MCP_VIEW_SCHEMA_NAME];
        mcp_schema_t *ignored = NULL;

        assert_int_equal(apr_pool_create(&pool, outer), APR_SUCCESS);
        if (mcp_schema_compile(schema, pool, &ignored, NULL) == MCP_OK) {
            json_t *copy = json_deep_copy(schema);

            ++real->tools;
            strip_nested(schema, schema, "", 0, real);
            assert_int_equal(mcp_view_schema_choose(copy, labels, 1, name), MCP_OK);
            assert_non_null(compiled(copy));
            json_decref(copy);
        }
        json_decref(labels);
        apr_pool_destroy(pool);
        pool = outer;
    }
}

static void schemas_of_real_tools_stay_sound(void **state)
{
    const char *data = getenv("MCP_TEST_DATA");
    char *folder = data != NULL ? apr_pstrcat(pool, data, "/tool-dumps", NULL) : NULL;
    DIR *dir = folder != NULL ? opendir(folder) : NULL;
    real_t real = {0, 0, 0};

    (void)state;
    if (dir == NULL) {
        print_message("no tool-dumps under MCP_TEST_DATA\n");
        skip();
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strstr(entry->d_name, ".json") != NULL) {
            json_t *dump =
                json_load_file(apr_pstrcat(pool, folder, "/", entry->d_name, NULL), 0, NULL);

            assert_non_null(dump);
            strip_tools(json_object_get(dump, "tools"), &real);
            json_decref(dump);
        }
    }
    (void)closedir(dir);
    print_message("%u tools, %u properties, %u nested\n", real.tools, real.places, real.nested);
    assert_true(real.tools > 500);
    assert_true(real.places > 2000);
    assert_true(real.nested > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frozen_places_leave_a_sound_schema, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_order_of_properties_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_hold_at_the_limit_and_one_above, set_up, tear_down),
        cmocka_unit_test_setup_teardown(schemas_that_explode_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_reason_names_a_key_or_a_value, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_place_is_known_if_it_is_declared_or_open, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(declared_names_are_those_of_all_that_applies, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_merged_tool_asks_which_account, set_up, tear_down),
        cmocka_unit_test_setup_teardown(labels_that_cannot_be_chosen_change_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_choice_and_its_renaming_belong_together, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(short_of_memory_nothing_comes_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_sentences_are_fixed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_a_stripped_schema_takes_the_original_takes_after_the_merge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(schemas_of_real_tools_stay_sound, set_up, tear_down),
    };

    if (apr_initialize() != APR_SUCCESS) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
