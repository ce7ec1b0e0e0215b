/* Words that say nothing about which tool is wanted: see view_words.h. Each list is in the order of
 * its bytes. */
#include "view_words.h"

#include <stdlib.h>
#include <string.h>

static const char *const functions[] = {
    "a",          "about",    "across",   "actually",  "after",    "again",     "against",
    "all",        "along",    "also",     "although",  "always",   "am",        "among",
    "an",         "and",      "another",  "any",       "anybody",  "anyone",    "anything",
    "are",        "aren",     "around",   "as",        "at",       "be",        "because",
    "been",       "before",   "being",    "between",   "both",     "but",       "by",
    "can",        "could",    "couldn",   "d",         "did",      "didn",      "different",
    "do",         "does",     "doesn",    "don",       "done",     "during",    "each",
    "eight",      "either",   "even",     "ever",      "every",    "everybody", "everyone",
    "everything", "except",   "few",      "five",      "for",      "four",      "from",
    "hadn",       "hasn",     "haven",    "he",        "help",     "her",       "here",
    "hers",       "herself",  "himself",  "his",       "how",      "however",   "i",
    "if",         "im",       "in",       "into",      "is",       "isn",       "it",
    "its",        "itself",   "ive",      "just",      "kindly",   "let",       "lets",
    "like",       "ll",       "m",        "many",      "may",      "maybe",     "me",
    "might",      "mine",     "most",     "much",      "multiple", "must",      "my",
    "myself",     "need",     "neither",  "never",     "nine",     "no",        "nobody",
    "nor",        "not",      "nothing",  "now",       "of",       "off",       "on",
    "one",        "only",     "onto",     "or",        "other",    "our",       "ours",
    "out",        "over",     "own",      "per",       "perhaps",  "please",    "quite",
    "rather",     "re",       "really",   "s",         "same",     "seven",     "several",
    "shall",      "she",      "should",   "shouldn",   "since",    "six",       "so",
    "some",       "somebody", "someone",  "something", "still",    "such",      "t",
    "ten",        "than",     "that",     "the",       "their",    "theirs",    "them",
    "themselves", "then",     "there",    "these",     "they",     "this",      "those",
    "though",     "three",    "through",  "to",        "too",      "toward",    "towards",
    "two",        "under",    "until",    "up",        "upon",     "us",        "various",
    "ve",         "very",     "want",     "was",       "wasn",     "we",        "were",
    "weren",      "what",     "whatever", "when",      "where",    "whether",   "which",
    "whichever",  "while",    "who",      "whoever",   "whom",     "whose",     "why",
    "will",       "with",     "within",   "without",   "won",      "would",     "wouldn",
    "yet",        "you",      "your",     "yours",     "yourself"};

static const char *const generics[] = {
    "action",       "actions",    "api",           "apis",       "available", "based",
    "capabilities", "capability", "content",       "data",       "details",   "feature",
    "features",     "function",   "functionality", "functions",  "general",   "including",
    "information",  "mcp",        "operation",     "operations", "related",   "server",
    "service",      "services",   "specific",      "support",    "supports",  "tool",
    "tools",        "use",        "used",          "using",      "various",   "via"};

/* Of the sentences that a gateway adds to descriptions. */
static const char *const silent[] = {"connection", "connections", "frozen", "more", "set", "sets"};

static int compare(const void *key, const void *row)
{
    return strcmp(key, *(const char *const *)row);
}

static int has(const char *const *list, size_t count, const char *word)
{
    return bsearch(word, list, count, sizeof(*list), compare) != NULL;
}

int mcp_view_words_is_function(const char *word)
{
    return has(functions, sizeof(functions) / sizeof(functions[0]), word);
}

int mcp_view_words_is_generic(const char *word)
{
    return has(generics, sizeof(generics) / sizeof(generics[0]), word);
}

int mcp_view_words_is_silent(const char *word)
{
    return has(silent, sizeof(silent) / sizeof(silent[0]), word);
}
