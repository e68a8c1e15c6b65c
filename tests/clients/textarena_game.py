"""TextArena: whole games in text for one player, who may err twice in a row."""

import gymnasium as gym
import textarena as ta
from mergefall.text_game import TextGame


class Game(ta.Env):
    def reset(self, num_players=1, seed=None):
        self.game = TextGame(gym.make("mergefall/Game2048-v0"), rules=True)
        prompt, _ = self.game.reset(seed=seed)
        self.state = ta.SinglePlayerState(num_players=num_players, seed=seed)
        self.state.reset(game_state={}, player_prompt_function=lambda **_: prompt)

    def step(self, action):
        prompt, _, terminated, truncated, info = self.game.step(action)
        self.state.add_observation(message=prompt, observation_type=ta.ObservationType.GAME_BOARD)
        if terminated or truncated:
            self.state.set_outcome(reward=info["score"], reason="The game is over.")
        return self.state.step()


# What `make clients` checks beyond that:
env, done = Game(), False
env.reset(seed=0)
while not done:
    _, messages = env.get_observation()
    done, _ = env.step(messages[-1][1].split("Legal moves: ")[1].split()[0].strip(","))
assert env.close()[0][0] > 300
env.reset(seed=0)
assert [env.step("hm")[0] for _ in range(3)] == [False, False, True]
