from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PtpTransport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    L2: _ClassVar[PtpTransport]
    UDP: _ClassVar[PtpTransport]

class PtpDelay(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    E2E: _ClassVar[PtpDelay]
    P2P: _ClassVar[PtpDelay]
L2: PtpTransport
UDP: PtpTransport
E2E: PtpDelay
P2P: PtpDelay

class IntroduceRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class IntroduceReply(_message.Message):
    __slots__ = ("agent_version", "host_name", "certificate_request")
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    HOST_NAME_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    agent_version: str
    host_name: str
    certificate_request: str
    def __init__(self, agent_version: _Optional[str] = ..., host_name: _Optional[str] = ..., certificate_request: _Optional[str] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("secret", "authority", "certificate")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    secret: bytes
    authority: str
    certificate: str
    def __init__(self, secret: _Optional[bytes] = ..., authority: _Optional[str] = ..., certificate: _Optional[str] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeReply(_message.Message):
    __slots__ = ("agent_version", "plan_schema", "record_schema", "host_name", "host", "interfaces", "in_use", "reached_at", "allowed", "drained")
    class HostEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    PLAN_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    RECORD_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    HOST_NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    INTERFACES_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    REACHED_AT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    agent_version: str
    plan_schema: int
    record_schema: int
    host_name: str
    host: _containers.ScalarMap[str, str]
    interfaces: _containers.RepeatedCompositeFieldContainer[InterfaceDescription]
    in_use: str
    reached_at: str
    allowed: _containers.RepeatedScalarFieldContainer[str]
    drained: str
    def __init__(self, agent_version: _Optional[str] = ..., plan_schema: _Optional[int] = ..., record_schema: _Optional[int] = ..., host_name: _Optional[str] = ..., host: _Optional[_Mapping[str, str]] = ..., interfaces: _Optional[_Iterable[_Union[InterfaceDescription, _Mapping]]] = ..., in_use: _Optional[str] = ..., reached_at: _Optional[str] = ..., allowed: _Optional[_Iterable[str]] = ..., drained: _Optional[str] = ...) -> None: ...

class InterfaceDescription(_message.Message):
    __slots__ = ("name", "mac", "ipv4", "rate_bps", "mtu", "up", "allowed", "timestamps", "in_use", "neighbours")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MAC_FIELD_NUMBER: _ClassVar[int]
    IPV4_FIELD_NUMBER: _ClassVar[int]
    RATE_BPS_FIELD_NUMBER: _ClassVar[int]
    MTU_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMPS_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    name: str
    mac: bytes
    ipv4: _containers.RepeatedScalarFieldContainer[str]
    rate_bps: int
    mtu: int
    up: bool
    allowed: bool
    timestamps: str
    in_use: str
    neighbours: _containers.RepeatedCompositeFieldContainer[Neighbour]
    def __init__(self, name: _Optional[str] = ..., mac: _Optional[bytes] = ..., ipv4: _Optional[_Iterable[str]] = ..., rate_bps: _Optional[int] = ..., mtu: _Optional[int] = ..., up: _Optional[bool] = ..., allowed: _Optional[bool] = ..., timestamps: _Optional[str] = ..., in_use: _Optional[str] = ..., neighbours: _Optional[_Iterable[_Union[Neighbour, _Mapping]]] = ...) -> None: ...

class Neighbour(_message.Message):
    __slots__ = ("chassis", "name", "port", "port_description", "port_vlan", "source")
    CHASSIS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    PORT_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PORT_VLAN_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    chassis: str
    name: str
    port: str
    port_description: str
    port_vlan: int
    source: str
    def __init__(self, chassis: _Optional[str] = ..., name: _Optional[str] = ..., port: _Optional[str] = ..., port_description: _Optional[str] = ..., port_vlan: _Optional[int] = ..., source: _Optional[str] = ...) -> None: ...

class HelloRequest(_message.Message):
    __slots__ = ("master_version", "lease_ms", "plan_schema", "record_schema", "campaign", "interface", "more_interfaces")
    MASTER_VERSION_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    PLAN_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    RECORD_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    MORE_INTERFACES_FIELD_NUMBER: _ClassVar[int]
    master_version: str
    lease_ms: int
    plan_schema: int
    record_schema: int
    campaign: str
    interface: str
    more_interfaces: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, master_version: _Optional[str] = ..., lease_ms: _Optional[int] = ..., plan_schema: _Optional[int] = ..., record_schema: _Optional[int] = ..., campaign: _Optional[str] = ..., interface: _Optional[str] = ..., more_interfaces: _Optional[_Iterable[str]] = ...) -> None: ...

class HelloReply(_message.Message):
    __slots__ = ("agent_version", "plan_schema", "record_schema", "host", "session")
    class HostEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    PLAN_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    RECORD_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    agent_version: str
    plan_schema: int
    record_schema: int
    host: _containers.ScalarMap[str, str]
    session: bytes
    def __init__(self, agent_version: _Optional[str] = ..., plan_schema: _Optional[int] = ..., record_schema: _Optional[int] = ..., host: _Optional[_Mapping[str, str]] = ..., session: _Optional[bytes] = ...) -> None: ...

class PrepareRequest(_message.Message):
    __slots__ = ("network_json", "run_json", "end_system", "ports", "servicing_core", "fifo_priority", "agents_on_host", "distrusted", "count", "signature", "capture_hold_ms", "card", "network_ports", "own_core")
    NETWORK_JSON_FIELD_NUMBER: _ClassVar[int]
    RUN_JSON_FIELD_NUMBER: _ClassVar[int]
    END_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    SERVICING_CORE_FIELD_NUMBER: _ClassVar[int]
    FIFO_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    AGENTS_ON_HOST_FIELD_NUMBER: _ClassVar[int]
    DISTRUSTED_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CAPTURE_HOLD_MS_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    NETWORK_PORTS_FIELD_NUMBER: _ClassVar[int]
    OWN_CORE_FIELD_NUMBER: _ClassVar[int]
    network_json: bytes
    run_json: bytes
    end_system: str
    ports: _containers.RepeatedCompositeFieldContainer[PortInterface]
    servicing_core: int
    fifo_priority: int
    agents_on_host: int
    distrusted: _containers.RepeatedCompositeFieldContainer[Distrust]
    count: int
    signature: bytes
    capture_hold_ms: int
    card: bool
    network_ports: _containers.RepeatedCompositeFieldContainer[NetworkPort]
    own_core: bool
    def __init__(self, network_json: _Optional[bytes] = ..., run_json: _Optional[bytes] = ..., end_system: _Optional[str] = ..., ports: _Optional[_Iterable[_Union[PortInterface, _Mapping]]] = ..., servicing_core: _Optional[int] = ..., fifo_priority: _Optional[int] = ..., agents_on_host: _Optional[int] = ..., distrusted: _Optional[_Iterable[_Union[Distrust, _Mapping]]] = ..., count: _Optional[int] = ..., signature: _Optional[bytes] = ..., capture_hold_ms: _Optional[int] = ..., card: _Optional[bool] = ..., network_ports: _Optional[_Iterable[_Union[NetworkPort, _Mapping]]] = ..., own_core: _Optional[bool] = ...) -> None: ...

class NetworkPort(_message.Message):
    __slots__ = ("end_system", "interface")
    END_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    end_system: str
    interface: str
    def __init__(self, end_system: _Optional[str] = ..., interface: _Optional[str] = ...) -> None: ...

class PortInterface(_message.Message):
    __slots__ = ("port", "interface")
    PORT_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    port: int
    interface: str
    def __init__(self, port: _Optional[int] = ..., interface: _Optional[str] = ...) -> None: ...

class Distrust(_message.Message):
    __slots__ = ("backend", "seen")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    backend: str
    seen: str
    def __init__(self, backend: _Optional[str] = ..., seen: _Optional[str] = ...) -> None: ...

class PrepareReply(_message.Message):
    __slots__ = ("grants", "access_points", "streams")
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    ACCESS_POINTS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    access_points: _containers.RepeatedScalarFieldContainer[str]
    streams: _containers.RepeatedCompositeFieldContainer[StreamChoice]
    def __init__(self, grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ..., access_points: _Optional[_Iterable[str]] = ..., streams: _Optional[_Iterable[_Union[StreamChoice, _Mapping]]] = ...) -> None: ...

class StreamChoice(_message.Message):
    __slots__ = ("kind", "number", "backend", "can_be_tried")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    CAN_BE_TRIED_FIELD_NUMBER: _ClassVar[int]
    kind: str
    number: int
    backend: str
    can_be_tried: bool
    def __init__(self, kind: _Optional[str] = ..., number: _Optional[int] = ..., backend: _Optional[str] = ..., can_be_tried: _Optional[bool] = ...) -> None: ...

class TryStreamRequest(_message.Message):
    __slots__ = ("kind", "number", "frames")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    number: int
    frames: int
    def __init__(self, kind: _Optional[str] = ..., number: _Optional[int] = ..., frames: _Optional[int] = ...) -> None: ...

class TryStreamReply(_message.Message):
    __slots__ = ("sent",)
    SENT_FIELD_NUMBER: _ClassVar[int]
    sent: int
    def __init__(self, sent: _Optional[int] = ...) -> None: ...

class ReadInterfaceRequest(_message.Message):
    __slots__ = ("interface",)
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    interface: str
    def __init__(self, interface: _Optional[str] = ...) -> None: ...

class ReadInterfaceReply(_message.Message):
    __slots__ = ("received", "receive_dropped")
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    RECEIVE_DROPPED_FIELD_NUMBER: _ClassVar[int]
    received: int
    receive_dropped: int
    def __init__(self, received: _Optional[int] = ..., receive_dropped: _Optional[int] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("name", "granted", "detail")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    name: str
    granted: bool
    detail: str
    def __init__(self, name: _Optional[str] = ..., granted: _Optional[bool] = ..., detail: _Optional[str] = ...) -> None: ...

class StartRequest(_message.Message):
    __slots__ = ("epoch_realtime_ns", "common_epoch_ns")
    EPOCH_REALTIME_NS_FIELD_NUMBER: _ClassVar[int]
    COMMON_EPOCH_NS_FIELD_NUMBER: _ClassVar[int]
    epoch_realtime_ns: int
    common_epoch_ns: int
    def __init__(self, epoch_realtime_ns: _Optional[int] = ..., common_epoch_ns: _Optional[int] = ...) -> None: ...

class StartReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("interval_ms", "live")
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    interval_ms: int
    live: bool
    def __init__(self, interval_ms: _Optional[int] = ..., live: _Optional[bool] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("sent", "received", "to_send", "done", "live", "trouble")
    SENT_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    TO_SEND_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    sent: int
    received: int
    to_send: int
    done: bool
    live: LiveFigures
    trouble: str
    def __init__(self, sent: _Optional[int] = ..., received: _Optional[int] = ..., to_send: _Optional[int] = ..., done: _Optional[bool] = ..., live: _Optional[_Union[LiveFigures, _Mapping]] = ..., trouble: _Optional[str] = ...) -> None: ...

class LiveFigures(_message.Message):
    __slots__ = ("number", "at_ns", "records_dropped", "flows", "flows_left_out", "network")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_DROPPED_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    FLOWS_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    number: int
    at_ns: int
    records_dropped: int
    flows: _containers.RepeatedCompositeFieldContainer[LiveFlow]
    flows_left_out: int
    network: LiveNetwork
    def __init__(self, number: _Optional[int] = ..., at_ns: _Optional[int] = ..., records_dropped: _Optional[int] = ..., flows: _Optional[_Iterable[_Union[LiveFlow, _Mapping]]] = ..., flows_left_out: _Optional[int] = ..., network: _Optional[_Union[LiveNetwork, _Mapping]] = ...) -> None: ...

class LiveNetwork(_message.Message):
    __slots__ = ("ports", "clocks")
    PORTS_FIELD_NUMBER: _ClassVar[int]
    CLOCKS_FIELD_NUMBER: _ClassVar[int]
    ports: _containers.RepeatedCompositeFieldContainer[LivePort]
    clocks: _containers.RepeatedCompositeFieldContainer[LiveClock]
    def __init__(self, ports: _Optional[_Iterable[_Union[LivePort, _Mapping]]] = ..., clocks: _Optional[_Iterable[_Union[LiveClock, _Mapping]]] = ...) -> None: ...

class LivePort(_message.Message):
    __slots__ = ("node", "port", "frames", "longest_ns", "queued")
    NODE_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    LONGEST_NS_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    node: int
    port: int
    frames: int
    longest_ns: int
    queued: int
    def __init__(self, node: _Optional[int] = ..., port: _Optional[int] = ..., frames: _Optional[int] = ..., longest_ns: _Optional[int] = ..., queued: _Optional[int] = ...) -> None: ...

class LiveClock(_message.Message):
    __slots__ = ("node", "at_ns", "offset_ns", "sync_state", "ptp_states", "grandmaster")
    class PtpStatesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_NS_FIELD_NUMBER: _ClassVar[int]
    SYNC_STATE_FIELD_NUMBER: _ClassVar[int]
    PTP_STATES_FIELD_NUMBER: _ClassVar[int]
    GRANDMASTER_FIELD_NUMBER: _ClassVar[int]
    node: int
    at_ns: int
    offset_ns: int
    sync_state: int
    ptp_states: _containers.ScalarMap[int, int]
    grandmaster: int
    def __init__(self, node: _Optional[int] = ..., at_ns: _Optional[int] = ..., offset_ns: _Optional[int] = ..., sync_state: _Optional[int] = ..., ptp_states: _Optional[_Mapping[int, int]] = ..., grandmaster: _Optional[int] = ...) -> None: ...

class LiveFlow(_message.Message):
    __slots__ = ("flow", "sent", "refused", "received", "missing", "repeats", "late_ns", "arrives", "round_trip", "measured", "min_ns", "max_ns", "sum_ns", "buckets", "counts", "worst_ns")
    FLOW_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    LATE_NS_FIELD_NUMBER: _ClassVar[int]
    ARRIVES_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    MIN_NS_FIELD_NUMBER: _ClassVar[int]
    MAX_NS_FIELD_NUMBER: _ClassVar[int]
    SUM_NS_FIELD_NUMBER: _ClassVar[int]
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    WORST_NS_FIELD_NUMBER: _ClassVar[int]
    flow: int
    sent: int
    refused: int
    received: int
    missing: int
    repeats: int
    late_ns: int
    arrives: bool
    round_trip: bool
    measured: int
    min_ns: int
    max_ns: int
    sum_ns: int
    buckets: _containers.RepeatedScalarFieldContainer[int]
    counts: _containers.RepeatedScalarFieldContainer[int]
    worst_ns: int
    def __init__(self, flow: _Optional[int] = ..., sent: _Optional[int] = ..., refused: _Optional[int] = ..., received: _Optional[int] = ..., missing: _Optional[int] = ..., repeats: _Optional[int] = ..., late_ns: _Optional[int] = ..., arrives: _Optional[bool] = ..., round_trip: _Optional[bool] = ..., measured: _Optional[int] = ..., min_ns: _Optional[int] = ..., max_ns: _Optional[int] = ..., sum_ns: _Optional[int] = ..., buckets: _Optional[_Iterable[int]] = ..., counts: _Optional[_Iterable[int]] = ..., worst_ns: _Optional[int] = ...) -> None: ...

class KeepRequest(_message.Message):
    __slots__ = ("from_realtime_ns", "to_realtime_ns")
    FROM_REALTIME_NS_FIELD_NUMBER: _ClassVar[int]
    TO_REALTIME_NS_FIELD_NUMBER: _ClassVar[int]
    from_realtime_ns: int
    to_realtime_ns: int
    def __init__(self, from_realtime_ns: _Optional[int] = ..., to_realtime_ns: _Optional[int] = ...) -> None: ...

class KeepReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FinishRequest(_message.Message):
    __slots__ = ("abort",)
    ABORT_FIELD_NUMBER: _ClassVar[int]
    abort: bool
    def __init__(self, abort: _Optional[bool] = ...) -> None: ...

class FinishReply(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: AgentReport
    def __init__(self, report: _Optional[_Union[AgentReport, _Mapping]] = ...) -> None: ...

class AgentReport(_message.Message):
    __slots__ = ("end_system", "complete", "incomplete_reason", "access_points", "tasks", "records_written", "records_dropped", "clock_steps", "largest_clock_step_ns", "involuntary_switches", "steal_ns", "started_realtime_ns", "ended_realtime_ns", "grants", "streams", "timestamps", "releases", "intake", "simulation_json", "captures", "foreign", "overlong", "cost")
    END_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_REASON_FIELD_NUMBER: _ClassVar[int]
    ACCESS_POINTS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_WRITTEN_FIELD_NUMBER: _ClassVar[int]
    RECORDS_DROPPED_FIELD_NUMBER: _ClassVar[int]
    CLOCK_STEPS_FIELD_NUMBER: _ClassVar[int]
    LARGEST_CLOCK_STEP_NS_FIELD_NUMBER: _ClassVar[int]
    INVOLUNTARY_SWITCHES_FIELD_NUMBER: _ClassVar[int]
    STEAL_NS_FIELD_NUMBER: _ClassVar[int]
    STARTED_REALTIME_NS_FIELD_NUMBER: _ClassVar[int]
    ENDED_REALTIME_NS_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMPS_FIELD_NUMBER: _ClassVar[int]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    INTAKE_FIELD_NUMBER: _ClassVar[int]
    SIMULATION_JSON_FIELD_NUMBER: _ClassVar[int]
    CAPTURES_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_FIELD_NUMBER: _ClassVar[int]
    OVERLONG_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    end_system: str
    complete: bool
    incomplete_reason: str
    access_points: _containers.RepeatedCompositeFieldContainer[AccessPointReport]
    tasks: _containers.RepeatedCompositeFieldContainer[TaskReport]
    records_written: int
    records_dropped: int
    clock_steps: int
    largest_clock_step_ns: int
    involuntary_switches: int
    steal_ns: int
    started_realtime_ns: int
    ended_realtime_ns: int
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    streams: _containers.RepeatedCompositeFieldContainer[StreamReport]
    timestamps: _containers.RepeatedCompositeFieldContainer[TimestampReport]
    releases: _containers.RepeatedCompositeFieldContainer[PortRelease]
    intake: ArrivalIntake
    simulation_json: str
    captures: _containers.RepeatedCompositeFieldContainer[DeviceCapture]
    foreign: _containers.RepeatedCompositeFieldContainer[ForeignFrames]
    overlong: _containers.RepeatedCompositeFieldContainer[OverlongFrames]
    cost: NetworkCost
    def __init__(self, end_system: _Optional[str] = ..., complete: _Optional[bool] = ..., incomplete_reason: _Optional[str] = ..., access_points: _Optional[_Iterable[_Union[AccessPointReport, _Mapping]]] = ..., tasks: _Optional[_Iterable[_Union[TaskReport, _Mapping]]] = ..., records_written: _Optional[int] = ..., records_dropped: _Optional[int] = ..., clock_steps: _Optional[int] = ..., largest_clock_step_ns: _Optional[int] = ..., involuntary_switches: _Optional[int] = ..., steal_ns: _Optional[int] = ..., started_realtime_ns: _Optional[int] = ..., ended_realtime_ns: _Optional[int] = ..., grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ..., streams: _Optional[_Iterable[_Union[StreamReport, _Mapping]]] = ..., timestamps: _Optional[_Iterable[_Union[TimestampReport, _Mapping]]] = ..., releases: _Optional[_Iterable[_Union[PortRelease, _Mapping]]] = ..., intake: _Optional[_Union[ArrivalIntake, _Mapping]] = ..., simulation_json: _Optional[str] = ..., captures: _Optional[_Iterable[_Union[DeviceCapture, _Mapping]]] = ..., foreign: _Optional[_Iterable[_Union[ForeignFrames, _Mapping]]] = ..., overlong: _Optional[_Iterable[_Union[OverlongFrames, _Mapping]]] = ..., cost: _Optional[_Union[NetworkCost, _Mapping]] = ...) -> None: ...

class NetworkCost(_message.Message):
    __slots__ = ("taking_ns", "model_ns", "handing_ns")
    TAKING_NS_FIELD_NUMBER: _ClassVar[int]
    MODEL_NS_FIELD_NUMBER: _ClassVar[int]
    HANDING_NS_FIELD_NUMBER: _ClassVar[int]
    taking_ns: int
    model_ns: int
    handing_ns: int
    def __init__(self, taking_ns: _Optional[int] = ..., model_ns: _Optional[int] = ..., handing_ns: _Optional[int] = ...) -> None: ...

class DeviceCapture(_message.Message):
    __slots__ = ("node", "task")
    NODE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    node: str
    task: TaskReport
    def __init__(self, node: _Optional[str] = ..., task: _Optional[_Union[TaskReport, _Mapping]] = ...) -> None: ...

class ForeignFrames(_message.Message):
    __slots__ = ("end_system", "ether_type", "frames", "bytes", "delivered", "line_ns", "dropped")
    class DroppedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    END_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    ETHER_TYPE_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    LINE_NS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    end_system: str
    ether_type: int
    frames: int
    bytes: int
    delivered: int
    line_ns: int
    dropped: _containers.ScalarMap[str, int]
    def __init__(self, end_system: _Optional[str] = ..., ether_type: _Optional[int] = ..., frames: _Optional[int] = ..., bytes: _Optional[int] = ..., delivered: _Optional[int] = ..., line_ns: _Optional[int] = ..., dropped: _Optional[_Mapping[str, int]] = ...) -> None: ...

class OverlongFrames(_message.Message):
    __slots__ = ("end_system", "interface", "frames", "longest")
    END_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    LONGEST_FIELD_NUMBER: _ClassVar[int]
    end_system: str
    interface: str
    frames: int
    longest: int
    def __init__(self, end_system: _Optional[str] = ..., interface: _Optional[str] = ..., frames: _Optional[int] = ..., longest: _Optional[int] = ...) -> None: ...

class PortRelease(_message.Message):
    __slots__ = ("end_system", "frames", "p50_ns", "p99_ns", "p999_ns", "max_ns", "undelivered", "access")
    END_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    P50_NS_FIELD_NUMBER: _ClassVar[int]
    P99_NS_FIELD_NUMBER: _ClassVar[int]
    P999_NS_FIELD_NUMBER: _ClassVar[int]
    MAX_NS_FIELD_NUMBER: _ClassVar[int]
    UNDELIVERED_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    end_system: str
    frames: int
    p50_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    undelivered: int
    access: str
    def __init__(self, end_system: _Optional[str] = ..., frames: _Optional[int] = ..., p50_ns: _Optional[int] = ..., p99_ns: _Optional[int] = ..., p999_ns: _Optional[int] = ..., max_ns: _Optional[int] = ..., undelivered: _Optional[int] = ..., access: _Optional[str] = ...) -> None: ...

class ArrivalIntake(_message.Message):
    __slots__ = ("frames", "moved", "most_moved_ns", "lost")
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    MOST_MOVED_NS_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    frames: int
    moved: int
    most_moved_ns: int
    lost: int
    def __init__(self, frames: _Optional[int] = ..., moved: _Optional[int] = ..., most_moved_ns: _Optional[int] = ..., lost: _Optional[int] = ...) -> None: ...

class TimestampReport(_message.Message):
    __slots__ = ("interface", "transmit", "receive", "why", "figures_json")
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    TRANSMIT_FIELD_NUMBER: _ClassVar[int]
    RECEIVE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    FIGURES_JSON_FIELD_NUMBER: _ClassVar[int]
    interface: str
    transmit: str
    receive: str
    why: str
    figures_json: str
    def __init__(self, interface: _Optional[str] = ..., transmit: _Optional[str] = ..., receive: _Optional[str] = ..., why: _Optional[str] = ..., figures_json: _Optional[str] = ...) -> None: ...

class StreamReport(_message.Message):
    __slots__ = ("kind", "number", "backend", "why", "pacing", "past_queue", "figures_json")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    PACING_FIELD_NUMBER: _ClassVar[int]
    PAST_QUEUE_FIELD_NUMBER: _ClassVar[int]
    FIGURES_JSON_FIELD_NUMBER: _ClassVar[int]
    kind: str
    number: int
    backend: str
    why: str
    pacing: str
    past_queue: bool
    figures_json: str
    def __init__(self, kind: _Optional[str] = ..., number: _Optional[int] = ..., backend: _Optional[str] = ..., why: _Optional[str] = ..., pacing: _Optional[str] = ..., past_queue: _Optional[bool] = ..., figures_json: _Optional[str] = ...) -> None: ...

class AccessPointReport(_message.Message):
    __slots__ = ("protocol", "frames_sent", "frames_received", "send_errors", "socket_drops", "inbox_drops", "missing_tx_timestamps", "missing_rx_timestamps", "foreign_frames")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    FRAMES_SENT_FIELD_NUMBER: _ClassVar[int]
    FRAMES_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    SEND_ERRORS_FIELD_NUMBER: _ClassVar[int]
    SOCKET_DROPS_FIELD_NUMBER: _ClassVar[int]
    INBOX_DROPS_FIELD_NUMBER: _ClassVar[int]
    MISSING_TX_TIMESTAMPS_FIELD_NUMBER: _ClassVar[int]
    MISSING_RX_TIMESTAMPS_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_FRAMES_FIELD_NUMBER: _ClassVar[int]
    protocol: str
    frames_sent: int
    frames_received: int
    send_errors: int
    socket_drops: int
    inbox_drops: int
    missing_tx_timestamps: int
    missing_rx_timestamps: int
    foreign_frames: int
    def __init__(self, protocol: _Optional[str] = ..., frames_sent: _Optional[int] = ..., frames_received: _Optional[int] = ..., send_errors: _Optional[int] = ..., socket_drops: _Optional[int] = ..., inbox_drops: _Optional[int] = ..., missing_tx_timestamps: _Optional[int] = ..., missing_rx_timestamps: _Optional[int] = ..., foreign_frames: _Optional[int] = ...) -> None: ...

class TaskReport(_message.Message):
    __slots__ = ("kind", "flow", "planned", "done", "late", "wire_bytes", "crc_errors", "wrong_destination", "unknown_flow", "sequence_gaps", "sequence_repeats", "ring_drops", "unwritten", "hardware_timestamps", "failure", "passed_over", "crowded_out")
    KIND_FIELD_NUMBER: _ClassVar[int]
    FLOW_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    WIRE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CRC_ERRORS_FIELD_NUMBER: _ClassVar[int]
    WRONG_DESTINATION_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FLOW_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_GAPS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_REPEATS_FIELD_NUMBER: _ClassVar[int]
    RING_DROPS_FIELD_NUMBER: _ClassVar[int]
    UNWRITTEN_FIELD_NUMBER: _ClassVar[int]
    HARDWARE_TIMESTAMPS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    PASSED_OVER_FIELD_NUMBER: _ClassVar[int]
    CROWDED_OUT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    flow: int
    planned: int
    done: int
    late: int
    wire_bytes: int
    crc_errors: int
    wrong_destination: int
    unknown_flow: int
    sequence_gaps: int
    sequence_repeats: int
    ring_drops: int
    unwritten: int
    hardware_timestamps: int
    failure: str
    passed_over: int
    crowded_out: int
    def __init__(self, kind: _Optional[str] = ..., flow: _Optional[int] = ..., planned: _Optional[int] = ..., done: _Optional[int] = ..., late: _Optional[int] = ..., wire_bytes: _Optional[int] = ..., crc_errors: _Optional[int] = ..., wrong_destination: _Optional[int] = ..., unknown_flow: _Optional[int] = ..., sequence_gaps: _Optional[int] = ..., sequence_repeats: _Optional[int] = ..., ring_drops: _Optional[int] = ..., unwritten: _Optional[int] = ..., hardware_timestamps: _Optional[int] = ..., failure: _Optional[str] = ..., passed_over: _Optional[int] = ..., crowded_out: _Optional[int] = ...) -> None: ...

class CollectRequest(_message.Message):
    __slots__ = ("campaign", "run", "node", "have")
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    campaign: str
    run: int
    node: int
    have: _containers.RepeatedCompositeFieldContainer[FilePart]
    def __init__(self, campaign: _Optional[str] = ..., run: _Optional[int] = ..., node: _Optional[int] = ..., have: _Optional[_Iterable[_Union[FilePart, _Mapping]]] = ...) -> None: ...

class FilePart(_message.Message):
    __slots__ = ("file", "bytes")
    FILE_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    file: str
    bytes: int
    def __init__(self, file: _Optional[str] = ..., bytes: _Optional[int] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("file", "data", "offset", "sha256")
    FILE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    file: str
    data: bytes
    offset: int
    sha256: bytes
    def __init__(self, file: _Optional[str] = ..., data: _Optional[bytes] = ..., offset: _Optional[int] = ..., sha256: _Optional[bytes] = ...) -> None: ...

class ListRecordsRequest(_message.Message):
    __slots__ = ("campaign",)
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    campaign: str
    def __init__(self, campaign: _Optional[str] = ...) -> None: ...

class ListRecordsReply(_message.Message):
    __slots__ = ("kept",)
    KEPT_FIELD_NUMBER: _ClassVar[int]
    kept: _containers.RepeatedCompositeFieldContainer[KeptRecords]
    def __init__(self, kept: _Optional[_Iterable[_Union[KeptRecords, _Mapping]]] = ...) -> None: ...

class KeptRecords(_message.Message):
    __slots__ = ("campaign", "run", "node", "owner", "bytes", "modified_realtime_ns", "active")
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_REALTIME_NS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    campaign: str
    run: int
    node: int
    owner: str
    bytes: int
    modified_realtime_ns: int
    active: bool
    def __init__(self, campaign: _Optional[str] = ..., run: _Optional[int] = ..., node: _Optional[int] = ..., owner: _Optional[str] = ..., bytes: _Optional[int] = ..., modified_realtime_ns: _Optional[int] = ..., active: _Optional[bool] = ...) -> None: ...

class DiscardRecordsRequest(_message.Message):
    __slots__ = ("campaign", "run", "node")
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    campaign: str
    run: int
    node: int
    def __init__(self, campaign: _Optional[str] = ..., run: _Optional[int] = ..., node: _Optional[int] = ...) -> None: ...

class DiscardRecordsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RevokeRequest(_message.Message):
    __slots__ = ("name", "fingerprint")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    name: str
    fingerprint: bytes
    def __init__(self, name: _Optional[str] = ..., fingerprint: _Optional[bytes] = ...) -> None: ...

class RevokeReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ("drained", "reason")
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    drained: bool
    reason: str
    def __init__(self, drained: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class DrainReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReachRequest(_message.Message):
    __slots__ = ("interface", "addresses", "bytes", "wait_ms")
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    interface: str
    addresses: _containers.RepeatedScalarFieldContainer[str]
    bytes: int
    wait_ms: int
    def __init__(self, interface: _Optional[str] = ..., addresses: _Optional[_Iterable[str]] = ..., bytes: _Optional[int] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class ReachReply(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[Answered]
    def __init__(self, answers: _Optional[_Iterable[_Union[Answered, _Mapping]]] = ...) -> None: ...

class Answered(_message.Message):
    __slots__ = ("macs",)
    MACS_FIELD_NUMBER: _ClassVar[int]
    macs: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, macs: _Optional[_Iterable[bytes]] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReleaseReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadClockRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadClockReply(_message.Message):
    __slots__ = ("realtime_ns", "monotonic_raw_ns")
    REALTIME_NS_FIELD_NUMBER: _ClassVar[int]
    MONOTONIC_RAW_NS_FIELD_NUMBER: _ClassVar[int]
    realtime_ns: int
    monotonic_raw_ns: int
    def __init__(self, realtime_ns: _Optional[int] = ..., monotonic_raw_ns: _Optional[int] = ...) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShutdownReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExamineRequest(_message.Message):
    __slots__ = ("interface",)
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    interface: str
    def __init__(self, interface: _Optional[str] = ...) -> None: ...

class ExamineReply(_message.Message):
    __slots__ = ("facts",)
    FACTS_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.RepeatedCompositeFieldContainer[HostFact]
    def __init__(self, facts: _Optional[_Iterable[_Union[HostFact, _Mapping]]] = ...) -> None: ...

class HostFact(_message.Message):
    __slots__ = ("name", "interface", "truth", "number", "text", "texts", "unreadable", "note")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    TRUTH_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    interface: str
    truth: bool
    number: int
    text: str
    texts: Texts
    unreadable: str
    note: str
    def __init__(self, name: _Optional[str] = ..., interface: _Optional[str] = ..., truth: _Optional[bool] = ..., number: _Optional[int] = ..., text: _Optional[str] = ..., texts: _Optional[_Union[Texts, _Mapping]] = ..., unreadable: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class Texts(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, text: _Optional[_Iterable[str]] = ...) -> None: ...

class MendRequest(_message.Message):
    __slots__ = ("interface", "fixes")
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    FIXES_FIELD_NUMBER: _ClassVar[int]
    interface: str
    fixes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, interface: _Optional[str] = ..., fixes: _Optional[_Iterable[str]] = ...) -> None: ...

class MendReply(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    def __init__(self, changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("fix", "interface", "setting", "before", "after", "refused")
    FIX_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    SETTING_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    fix: str
    interface: str
    setting: str
    before: str
    after: str
    refused: str
    def __init__(self, fix: _Optional[str] = ..., interface: _Optional[str] = ..., setting: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ..., refused: _Optional[str] = ...) -> None: ...

class RestoreRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RestoreReply(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    def __init__(self, changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ...) -> None: ...

class StartClockProgramsRequest(_message.Message):
    __slots__ = ("interface", "domain", "transport", "delay", "hardware", "server", "steer", "log_sync_interval", "kp_thousandths", "ki_thousandths")
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    HARDWARE_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    STEER_FIELD_NUMBER: _ClassVar[int]
    LOG_SYNC_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    KP_THOUSANDTHS_FIELD_NUMBER: _ClassVar[int]
    KI_THOUSANDTHS_FIELD_NUMBER: _ClassVar[int]
    interface: str
    domain: int
    transport: PtpTransport
    delay: PtpDelay
    hardware: bool
    server: bool
    steer: bool
    log_sync_interval: int
    kp_thousandths: int
    ki_thousandths: int
    def __init__(self, interface: _Optional[str] = ..., domain: _Optional[int] = ..., transport: _Optional[_Union[PtpTransport, str]] = ..., delay: _Optional[_Union[PtpDelay, str]] = ..., hardware: _Optional[bool] = ..., server: _Optional[bool] = ..., steer: _Optional[bool] = ..., log_sync_interval: _Optional[int] = ..., kp_thousandths: _Optional[int] = ..., ki_thousandths: _Optional[int] = ...) -> None: ...

class StartClockProgramsReply(_message.Message):
    __slots__ = ("programs",)
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    programs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, programs: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchClockProgramsRequest(_message.Message):
    __slots__ = ("after",)
    AFTER_FIELD_NUMBER: _ClassVar[int]
    after: int
    def __init__(self, after: _Optional[int] = ...) -> None: ...

class ClockProgramLine(_message.Message):
    __slots__ = ("sequence", "program", "text", "realtime_less_monotonic_ns", "gone")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REALTIME_LESS_MONOTONIC_NS_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    program: str
    text: str
    realtime_less_monotonic_ns: int
    gone: bool
    def __init__(self, sequence: _Optional[int] = ..., program: _Optional[str] = ..., text: _Optional[str] = ..., realtime_less_monotonic_ns: _Optional[int] = ..., gone: _Optional[bool] = ...) -> None: ...

class AskClockProgramsRequest(_message.Message):
    __slots__ = ("ptp", "chrony")
    PTP_FIELD_NUMBER: _ClassVar[int]
    CHRONY_FIELD_NUMBER: _ClassVar[int]
    ptp: bool
    chrony: bool
    def __init__(self, ptp: _Optional[bool] = ..., chrony: _Optional[bool] = ...) -> None: ...

class AskClockProgramsReply(_message.Message):
    __slots__ = ("pmc", "chrony", "kernel")
    PMC_FIELD_NUMBER: _ClassVar[int]
    CHRONY_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    pmc: str
    chrony: str
    kernel: KernelClock
    def __init__(self, pmc: _Optional[str] = ..., chrony: _Optional[str] = ..., kernel: _Optional[_Union[KernelClock, _Mapping]] = ...) -> None: ...

class KernelClock(_message.Message):
    __slots__ = ("tai_s", "leap")
    TAI_S_FIELD_NUMBER: _ClassVar[int]
    LEAP_FIELD_NUMBER: _ClassVar[int]
    tai_s: int
    leap: int
    def __init__(self, tai_s: _Optional[int] = ..., leap: _Optional[int] = ...) -> None: ...

class StopClockProgramsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StopClockProgramsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
