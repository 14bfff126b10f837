// Teams: splits with odd arguments, translation, the predefined ones, how many there may be.
#pragma once

#include "pe.h"

inline std::string team_word(nvshmem_team_t team) {
    return team == NVSHMEM_TEAM_INVALID ? "INVALID" : text("handle %d", int(team));
}

inline void ask_split(int first, int stride, int size) {
    start();
    nvshmem_team_t team = -77;
    int rc = CALL(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, first, stride, size, nullptr, 0, &team));
    observed("rc", rc);
    observed("handle", int(team));
    say(text("rc %d, ", rc) + (team == -77 ? "the handle is not written" : team_word(team)));
    if (team != -77 && team != NVSHMEM_TEAM_INVALID) {
        observed("team_n_pes", CALL(nvshmem_team_n_pes(team)));
        observed("team_my_pe", CALL(nvshmem_team_my_pe(team)));
        say(text("team_n_pes %d, team_my_pe %d", nvshmem_team_n_pes(team), nvshmem_team_my_pe(team)));
    }
    CALL(nvshmem_barrier_all());
    finish();
}

// A parent of PEs 0 and 1, of which a third member is asked for: inside the world, outside the parent.
inline void ask_split_outsider() {
    Pe pe = start();
    nvshmem_team_t parent = NVSHMEM_TEAM_INVALID, team = -77;
    int rc = CALL(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, 2, nullptr, 0, &parent));
    observed("parent_rc", rc);
    if (rc != 0 || (pe.rank < 2) != (parent != NVSHMEM_TEAM_INVALID)) throw Broken{"the parent was not made"};
    if (pe.rank < 2) {
        rc = CALL(nvshmem_team_split_strided(parent, 0, 1, 3, nullptr, 0, &team));
        observed("rc", rc);
        observed("handle", int(team));
        say(text("rc %d, ", rc) + team_word(team));
        if (team != NVSHMEM_TEAM_INVALID) {
            observed("team_n_pes", CALL(nvshmem_team_n_pes(team)));
            say(text("team_n_pes %d", nvshmem_team_n_pes(team)));
        }
    }
    leave();  // a team with a member that knows nothing of it: nothing after this would be an answer
}

inline void ask_translate() {
    Pe pe = start();
    int inside = CALL(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pe.pes - 1, NVSHMEM_TEAM_WORLD));
    observed("last", inside);
    int size = CALL(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pe.pes, NVSHMEM_TEAM_WORLD));
    observed("size", size);
    say(text("src_pe = size gives %d", size));
    int beyond = CALL(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pe.pes + 1, NVSHMEM_TEAM_WORLD));
    observed("size_plus_1", beyond);
    say(text("size + 1 gives %d", beyond));
    int negative = CALL(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, -1, NVSHMEM_TEAM_WORLD));
    observed("minus_1", negative);
    say(text("-1 gives %d", negative));
    finish();
}

inline void ask_destroy_world() {
    start();
    CALL(nvshmem_team_destroy(NVSHMEM_TEAM_WORLD));
    say("team_destroy(WORLD) returns");
    observed("n_pes", CALL(nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD)));
    say(text("team_n_pes(WORLD) is %d then", nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD)));
    CALL(nvshmem_barrier_all());
    say("barrier_all returns");
    int rc = CALL(nvshmem_barrier(NVSHMEM_TEAM_WORLD));
    observed("barrier_rc", rc);
    say(text("barrier(WORLD) returns %d", rc));
    finish();
}

inline void ask_leaders() {
    start();
    const nvshmem_team_t leaders = NVSHMEM_TEAM_GPU_LEADERS_INDEX;
    int rank = CALL(nvshmem_team_my_pe(leaders));
    observed("team_my_pe", rank);
    say(text("team_my_pe gives %d", rank));
    int size = CALL(nvshmem_team_n_pes(leaders));
    observed("team_n_pes", size);
    say(text("team_n_pes gives %d", size));
    meet("asked", 5);
    finish();
}

// Splits until one fails. The count is recorded as it grows, for a failure that ends the process.
inline void ask_max_teams() {
    Pe pe = start();
    const int enough = 1100;
    std::vector<nvshmem_team_t> teams;
    int rc = 0;
    auto begin = Clock::now();
    while ((int)teams.size() < enough && seconds_since(begin) < 15) {
        nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
        rc = CALL(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, pe.pes, nullptr, 0, &team));
        if (rc != 0 || team == NVSHMEM_TEAM_INVALID) {
            observed("rc_at_the_limit", rc);
            observed("handle_at_the_limit", int(team));
            break;
        }
        teams.push_back(team);
        observed("teams", (int)teams.size());
    }
    observed("seconds", seconds_since(begin));
    if (teams.empty()) throw Broken{text("not even the first split worked: rc %d", rc)};
    bool failed = rc != 0 || (int)teams.size() < enough;
    if (failed && seconds_since(begin) >= 15) throw Broken{text("%d teams took 15 s", (int)teams.size())};
    say(text("%d teams", (int)teams.size()) + (failed ? text(", the next split returns %d", rc) : " and no failure"));
    if (failed) {
        CALL(nvshmem_team_destroy(teams.back()));
        nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
        rc = CALL(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, pe.pes, nullptr, 0, &team));
        observed("rc_after_a_destroy", rc);
        say(text("after a destroy, %d and ", rc) + (team == NVSHMEM_TEAM_INVALID ? "INVALID" : "a team"));
    }
    leave();  // finalize with so many teams is not the question
}
