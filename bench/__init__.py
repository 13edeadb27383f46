"""What Dragoman costs, side by side with the least a Python gateway can cost.

`python -m bench` starts a fast scripted backend, a bare FastAPI + aiohttp relay and a Dragoman,
drives both with the same load from another process, and reads the CPU time of each server.
CPU per unit of work is far steadier than requests per second on a machine that others use.
"""
